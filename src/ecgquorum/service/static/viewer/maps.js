/**
 * Attribution maps of the members: a band behind the trace, stronger where the attribution is larger.
 *
 * @typedef {{name: string, leads: Object<string, number[]>}} MemberMap values from 0 to 1, evenly spaced from start_s to stop_s
 * @typedef {{start_s: number, stop_s: number, members: MemberMap[]}} Maps
 * @typedef {{fromS: number, toS: number, left: number, pxPerS: number, top: number, height: number}} Place
 *   the recording's seconds, and device pixels
 */

// Neither the paper's colour nor the caliper's.
const COLOUR = [0, 128, 96];
const MOST_ALPHA = 0.4;

/**
 * @param {string} url
 * @returns {Promise<Maps | null>} null while the reader may not see them, or if there are none
 */
export async function loadMaps(url) {
  const answer = await fetch(url, { credentials: "same-origin" });
  if (answer.status === 404 || answer.status === 409) return null;
  if (!answer.ok) throw new Error(`the maps could not be loaded: ${answer.status} ${answer.statusText}`);
  const maps = await answer.json();
  if (!(maps.stop_s > maps.start_s) || !Array.isArray(maps.members)) {
    throw new Error("expected start_s < stop_s and members in the maps");
  }
  return maps.members.length > 0 ? maps : null;
}

/** One member's map, ready to be drawn. */
export class Bands {
  /** @param {Maps} maps @param {MemberMap} member */
  constructor(maps, member) {
    this.member = member.name;
    this.startS = maps.start_s;
    this.stopS = maps.stop_s;
    this.images = new Map(Object.entries(member.leads).map(([lead, values]) => [lead, imageOf(values)]));
  }

  /** @param {CanvasRenderingContext2D} context @param {string} lead @param {Place} place */
  draw(context, lead, { fromS, toS, left, pxPerS, top, height }) {
    const image = this.images.get(lead);
    const [first, last] = [Math.max(fromS, this.startS), Math.min(toS, this.stopS)];
    if (!image || last <= first) return;
    const lengthS = last - first;
    const perS = image.width / (this.stopS - this.startS);
    const [source, x] = [(first - this.startS) * perS, left + (first - fromS) * pxPerS];
    context.drawImage(image, source, 0, lengthS * perS, 1, x, top, lengthS * pxPerS, height);
  }
}

/** One pixel a value: the browser stretches it over the stretch. @param {number[]} values */
function imageOf(values) {
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, values.length);
  canvas.height = 1;
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, 1);
  values.forEach((value, index) => {
    const strength = Math.max(0, Math.min(1, value));
    image.data.set([...COLOUR, Math.round(255 * MOST_ALPHA * strength)], 4 * index);
  });
  context.putImageData(image, 0, 0);
  return canvas;
}
