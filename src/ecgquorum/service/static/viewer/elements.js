/** Making elements. Content is text and never markup, whatever a recording's leads are called. */

/**
 * @param {string} name of the element
 * @param {Object<string, string>} [attributes]
 * @param {(Node | string)[]} [children]
 * @returns {HTMLElement}
 */
export function make(name, attributes = {}, children = []) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/**
 * In CSS pixels.
 * @param {HTMLElement} element @param {number} left @param {number} top @param {number} [width] @param {number} [height]
 */
export function place(element, left, top, width, height) {
  element.style.transform = `translate(${left}px, ${top}px)`;
  if (width !== undefined) element.style.width = `${width}px`;
  if (height !== undefined) element.style.height = `${height}px`;
}
