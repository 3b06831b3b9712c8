"""Fast convolution, batch norm and dropout for members."""
