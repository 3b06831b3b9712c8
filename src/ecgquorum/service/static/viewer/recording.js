/**
 * One recording in memory, as the viewer draws it.
 *
 * @typedef {object} Trace
 * @property {string} name of the lead
 * @property {Float32Array} samples millivolt; NaN is a missing sample
 * @property {import("./pyramid.js").Level[]} levels
 * @property {number} restMv the median, drawn on the row's base line
 * @property {{low: number, high: number}} extentMv about `restMv`: what nine seconds of ten keep within
 *
 * @typedef {{rateHz: number, durationS: number, traces: Trace[]}} Recording
 */

import { buildPyramid, nextTurn } from "./pyramid.js";

/** 256 MiB: 62 hours of one lead at 300 Hz, or 3 hours of 12 leads at 500 Hz. */
export const MAX_VALUES = 1 << 26;
const LOOKED_AT = 4096;
const SECONDS_LOOKED_AT = 512;

/**
 * @param {string} traceUrl JSON: rate_hz, leads, n_samples
 * @param {string} samplesUrl little-endian float32, (lead, time), millivolt
 * @returns {Promise<Recording>}
 */
export async function loadRecording(traceUrl, samplesUrl) {
  const header = await (await fetched(traceUrl)).json();
  const { rate_hz: rateHz, leads, n_samples: nSamples } = header;
  if (!(rateHz > 0) || !Array.isArray(leads) || leads.length === 0 || !(nSamples > 0)) {
    throw new Error(`expected rate_hz, leads and n_samples of a recording, found ${JSON.stringify(header)}`);
  }
  const nValues = leads.length * nSamples;
  if (nValues > MAX_VALUES) {
    const hours = (MAX_VALUES / leads.length / rateHz / 3600).toFixed(1);
    throw new Error(`too long to draw: ${nValues} values; the limit is ${MAX_VALUES}, ${hours} h of such a recording`);
  }
  const bytes = await (await fetched(samplesUrl)).arrayBuffer();
  if (bytes.byteLength !== 4 * nValues) {
    throw new Error(`expected ${4 * nValues} bytes of samples, found ${bytes.byteLength}`);
  }
  // Every platform with a browser is little-endian, and so are the samples.
  return recordingOf(rateHz, leads, new Float32Array(bytes), nextTurn);
}

/** @param {string} url */
async function fetched(url) {
  const answer = await fetch(url, { credentials: "same-origin" });
  if (!answer.ok) throw new Error(`the recording could not be loaded: ${answer.status} ${answer.statusText}`);
  return answer;
}

/**
 * @param {number} rateHz @param {string[]} leads @param {Float32Array} values (lead, time)
 * @param {() => Promise<void>} [pause]
 * @returns {Promise<Recording>}
 */
export async function recordingOf(rateHz, leads, values, pause) {
  const nSamples = values.length / leads.length;
  const traces = [];
  for (const [index, name] of leads.entries()) {
    const samples = values.subarray(index * nSamples, (index + 1) * nSamples);
    const restMv = median(samples);
    const levels = await buildPyramid(samples, pause);
    traces.push({ name, samples, levels, restMv, extentMv: extentOf(samples, rateHz, restMv) });
  }
  return { rateHz, durationS: nSamples / rateHz, traces };
}

/** Of at most some thousands of samples, evenly taken; 0 if all are missing. @param {Float32Array} samples */
export function median(samples) {
  const step = Math.max(1, Math.floor(samples.length / LOOKED_AT));
  const taken = [];
  for (let i = 0; i < samples.length; i += step) if (!Number.isNaN(samples[i])) taken.push(samples[i]);
  return taken.length === 0 ? 0 : quantile(taken, 0.5);
}

/** @param {Float32Array} samples @param {number} rateHz @param {number} restMv */
function extentOf(samples, rateHz, restMv) {
  const second = Math.max(1, Math.round(rateHz));
  const stride = second * Math.max(1, Math.floor(samples.length / second / SECONDS_LOOKED_AT));
  const lows = [];
  const highs = [];
  for (let from = 0; from < samples.length; from += stride) {
    let low = Infinity;
    let high = -Infinity;
    for (let i = from; i < Math.min(from + second, samples.length); i++) {
      if (samples[i] < low) low = samples[i];
      if (samples[i] > high) high = samples[i];
    }
    if (low !== Infinity) {
      lows.push(low);
      highs.push(high);
    }
  }
  if (lows.length === 0) return { low: 0, high: 0 };
  return { low: quantile(lows, 0.1) - restMv, high: quantile(highs, 0.9) - restMv };
}

/** @param {number[]} values put into order @param {number} share */
function quantile(values, share) {
  values.sort((a, b) => a - b);
  return values[Math.round(share * (values.length - 1))];
}
