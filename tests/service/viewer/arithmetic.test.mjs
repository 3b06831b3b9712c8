// The viewer's arithmetic, run by test_drawing.py through `node --test` beside a copy of the modules.
import assert from "node:assert/strict";
import { test } from "node:test";

import { moved, reading, readingWords } from "./viewer/calipers.js";
import { bounded, fittingZoom, geometryOf, largestZoom, panned, rowAt, rowSecondsAt, xOf } from "./viewer/geometry.js";
import { commandOf } from "./viewer/gestures.js";
import { layoutsFor, sheetOf } from "./viewer/layout.js";
import { gridLines } from "./viewer/paper.js";
import { buildPyramid } from "./viewer/pyramid.js";
import { median, recordingOf } from "./viewer/recording.js";
import { addTrace } from "./viewer/reduction.js";
import { boundedZoom, CSS_PX_PER_MM, printedScale, screenPxPerMm, storeScreen } from "./viewer/scale.js";
import { clock } from "./viewer/traces.js";

const TWELVE = ["I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6"];
const near = (found, expected, within = 1e-6) => assert.ok(Math.abs(found - expected) <= within, `${found} is not ${expected}`);
const noise = (length, seed = 1) => Float32Array.from({ length }, () => ((seed = (seed * 16807) % 2147483647) / 2147483647) - 0.5);

/** The points of a path, one list for each stroke. */
function strokes(trace, from, to, samplesPerPx) {
  const found = [];
  const path = { moveTo: (x, y) => found.push([[x, y]]), lineTo: (x, y) => found.at(-1).push([x, y]) };
  addTrace(path, trace, from, to, samplesPerPx, { x: (sample) => sample / samplesPerPx, y: (mv) => mv });
  return found;
}

const traceOf = async (samples) => ({ samples, levels: await buildPyramid(samples) });
const storage = () => {
  const entries = new Map();
  return { getItem: (key) => entries.get(key) ?? null, setItem: (key, value) => entries.set(key, value), removeItem: (key) => entries.delete(key) };
};

test("every bucket of the pyramid has the extremes of its samples", async () => {
  const samples = noise(5000);
  samples.fill(NaN, 512, 800);
  const levels = await buildPyramid(samples);
  assert.deepEqual(levels.map(({ size }) => size), [16, 256, 4096]);
  for (const { size, low, high } of levels) {
    assert.equal(low.length, Math.ceil(5000 / size));
    low.forEach((least, bucket) => {
      const inside = [...samples.subarray(bucket * size, (bucket + 1) * size)].filter((value) => !Number.isNaN(value));
      if (inside.length === 0) assert.ok(Number.isNaN(least) && Number.isNaN(high[bucket]));
      else assert.deepEqual([least, high[bucket]], [Math.min(...inside), Math.max(...inside)]);
    });
  }
});

test("a reduced line is short and keeps each spike, wherever it is", async () => {
  for (const samplesPerPx of [0.5, 1.7, 3, 15.9, 16, 40, 300, 5000]) {
    for (const at of [0, 777, 4095, 4096, 9999]) {
      const samples = new Float32Array(10000);
      samples[at] = 1;
      samples[(at + 5000) % 10000] = -1;
      const [line, ...more] = strokes(await traceOf(samples), 0, 10000, samplesPerPx);
      assert.equal(more.length, 0);
      const ys = line.map(([, y]) => y);
      assert.ok(Math.max(...ys) === 1 && Math.min(...ys) === -1, `${samplesPerPx} ${at}`);
      assert.ok(line.length <= Math.max(4 * (10000 / samplesPerPx) + 4, 2), `${line.length} points at ${samplesPerPx}`);
      const spike = line.find(([, y]) => y === 1)[0];
      near(spike, at / samplesPerPx, 1.5);
      line.slice(1).forEach(([x], index) => assert.ok(x >= line[index][0]));
    }
  }
});

test("a line breaks where samples are missing and marks one that is alone", async () => {
  const samples = new Float32Array(4000).fill(0.25);
  samples.fill(NaN, 1000, 2000);
  samples.fill(NaN, 3000, 3999);
  for (const samplesPerPx of [1, 5, 64]) {
    const found = strokes(await traceOf(samples), 0, 4000, samplesPerPx);
    assert.equal(found.length, 3);
    assert.ok(found.every((stroke) => stroke.length >= 2));
    near(found[1][0][0], 2000 / samplesPerPx, 1);
  }
  assert.deepEqual(strokes(await traceOf(new Float32Array(100).fill(NaN)), 0, 100, 3), []);
});

test("a moved line has the same points", async () => {
  const trace = await traceOf(noise(20000));
  for (const samplesPerPx of [3.3, 21, 530]) {
    const whole = new Set(strokes(trace, 0, 20000, samplesPerPx)[0].map(String));
    const part = strokes(trace, 7000, 13000, samplesPerPx)[0].map(String).slice(4, -4);
    assert.ok(part.every((point) => whole.has(point)));
  }
});

test("layouts are those of the leads", () => {
  assert.deepEqual(layoutsFor(TWELVE), ["3x4+1", "6x2", "12x1"]);
  assert.deepEqual(layoutsFor([...TWELVE].reverse()), ["3x4+1", "6x2", "12x1"]);
  assert.deepEqual(layoutsFor([...TWELVE, "V7"]), ["3x4+1", "6x2", "13x1"]);
  assert.deepEqual(layoutsFor(["II"]), ["strips"]);
  assert.deepEqual(layoutsFor(["I", "V1"]), ["2x1"]);
});

const about = (names, more = {}) => ({
  traces: names.map((name) => ({ name, extentMv: { low: -0.5, high: 1.2 } })),
  durationS: 30, availableS: 14.2, speed: 25, gain: 10, leastS: 10, ...more,
});

test("columns follow each other in time and fill the page", () => {
  for (const [layout, columns] of [["3x4+1", 4], ["6x2", 2], ["12x1", 1]]) {
    for (const more of [{}, { durationS: 6 }, { availableS: 3 }, { speed: 50, leastS: 0, availableS: 5 }]) {
      const { rows, rowS, pageS } = sheetOf(layout, about(TWELVE, more));
      assert.equal(rows[0].panels.length, columns);
      assert.ok(rowS <= (more.durationS ?? 30) && pageS === rowS);
      for (const { panels } of rows) {
        near(panels.reduce((sum, { lengthS }) => sum + lengthS, 0), rowS);
        panels.slice(1).forEach((panel, index) => near(panel.fromS, panels[index].fromS + panels[index].lengthS));
      }
      const shown = new Set(rows.flatMap(({ panels }) => panels.map(({ trace }) => trace)));
      assert.equal(shown.size, 12);
    }
  }
  assert.equal(sheetOf("3x4+1", about(TWELVE, { durationS: 10 })).rows[0].panels[0].lengthS, 2.5);
});

test("rows have room for what is in them, and base lines room for a pulse", () => {
  for (const gain of [5, 10, 20]) {
    for (const layout of ["3x4+1", "6x2", "12x1"]) {
      const { rows, heightMm } = sheetOf(layout, about(TWELVE, { gain }));
      let before = 0;
      for (const { topMm, heightMm: height, baseMm } of rows) {
        assert.ok(baseMm % 5 === 0 && baseMm >= topMm && baseMm <= topMm + height);
        assert.ok(height >= 1.7 * gain);
        assert.ok(baseMm - before > gain);
        before = baseMm;
      }
      assert.equal(heightMm, rows.at(-1).topMm + rows.at(-1).heightMm);
    }
  }
});

test("one lead goes on consecutive strips of whole squares", () => {
  const { rows, rowS, pageS } = sheetOf("strips", about(["II"]));
  rows.forEach(({ startS }, index) => near(startS, index * 14.2));
  near((rowS * 25) % 5, 0);
  near(pageS, 3 * rowS);
  assert.equal(sheetOf("strips", about(["II"], { durationS: 86400 })).rows.length, 8);
});

const VIEW = { layout: "3x4+1", speed: 25, gain: 10, zoom: 1, startS: 0, offsetS: 0 };
const SCREEN = { widthPx: 1000, pxPerMm: CSS_PX_PER_MM, ratio: 1, linePx: 1, leastS: 10 };

test("a window moves along the page first, then through the recording, and stays on it", async () => {
  const recording = await recordingOf(500, TWELVE, new Float32Array(12 * 15000));
  const narrow = geometryOf(VIEW, recording, { ...SCREEN, widthPx: 390 });
  near(narrow.sheet.rowS, 10);
  const room = narrow.sheet.rowS - narrow.availableS;
  assert.deepEqual(panned(VIEW, narrow, 1), { ...VIEW, offsetS: 1 });
  const beyond = panned(VIEW, narrow, room + 2);
  near(beyond.offsetS, room);
  near(beyond.startS, 2);
  near(panned(beyond, narrow, -1).startS, 2);
  const last = panned(VIEW, narrow, Infinity);
  near(last.startS, 20);
  near(last.offsetS, room);
  assert.deepEqual(panned(last, narrow, -Infinity), VIEW);
  assert.deepEqual(bounded({ ...VIEW, startS: -5, offsetS: 99 }, narrow).startS, 0);
});

test("places and times are each other's inverse", async () => {
  const recording = await recordingOf(500, TWELVE, new Float32Array(12 * 5000));
  for (const zoom of [0.25, 1, 3.3]) {
    const view = { ...VIEW, zoom, offsetS: 1.25 };
    const geometry = geometryOf(view, recording, SCREEN);
    near(xOf(geometry, view, 3) - xOf(geometry, view, 2), 25 * CSS_PX_PER_MM * zoom);
    near(rowSecondsAt(geometry, view, xOf(geometry, view, 4.321)), 4.321);
    geometry.sheet.rows.forEach(({ baseMm }, index) => assert.equal(rowAt(geometry, baseMm * geometry.pxPerMm - 1), index));
    assert.ok(largestZoom(view, geometry) >= zoom);
  }
  const fit = fittingZoom(VIEW, recording, SCREEN);
  const fitted = geometryOf({ ...VIEW, zoom: fit }, recording, SCREEN);
  near(fitted.maxOffsetS, 0);
  near(xOf(fitted, VIEW, 10), 1000, 2);
});

test("a recording knows where its leads rest and how far they go", async () => {
  const values = new Float32Array(2 * 3000).fill(0.75);
  values.fill(NaN, 3000);
  for (let beat = 100; beat < 3000; beat += 300) values[beat] = 2;
  values[1500] = -40;
  const { traces, durationS } = await recordingOf(300, ["I", "II"], values);
  assert.equal(durationS, 10);
  near(traces[0].restMv, 0.75);
  near(traces[0].extentMv.high, 1.25);
  near(traces[0].extentMv.low, 0);
  assert.deepEqual(traces[1].extentMv, { low: 0, high: 0 });
  assert.equal(median(Float32Array.of(NaN, NaN)), 0);
});

test("the caliper's numbers", () => {
  const caliper = { row: 0, points: [{ timeS: 1.5, mv: 0.2 }, { timeS: 0.75, mv: -0.3 }] };
  assert.deepEqual(reading(caliper), { ms: 750, mv: 0.5, perMinute: 80 });
  assert.deepEqual(readingWords(caliper), ["750 ms", "80 beats/min", "0.50 mV"]);
  const point = { timeS: 1, mv: 0 };
  assert.deepEqual(readingWords({ row: 0, points: [point, point] }), ["0 ms", "0.00 mV"]);
  near(moved(point, "ArrowLeft", true).timeS, 0.95);
  near(moved(point, "ArrowUp", false).mv, 0.05);
  assert.equal(moved(point, "Enter", false), null);
});

test("keys that are not the viewer's mean nothing to it", () => {
  const plain = { shiftKey: false, ctrlKey: false, altKey: false, metaKey: false };
  for (const key of [..."0123456789jkJK", "Enter", "ArrowUp", "ArrowDown", "Tab", " "]) assert.equal(commandOf({ ...plain, key }), null);
  assert.equal(commandOf({ ...plain, key: "+", ctrlKey: true }), null);
  assert.deepEqual(commandOf({ ...plain, key: "ArrowLeft" }), { kind: "move", squares: -1 });
});

test("the screen's millimetre is remembered in device pixels and doubted when absurd", () => {
  const kept = storage();
  near(screenPxPerMm(kept, 2), CSS_PX_PER_MM);
  storeScreen(kept, 5, 2);
  near(screenPxPerMm(kept, 2), 5);
  near(screenPxPerMm(kept, 2.5), 4);
  storeScreen(kept, 4000, 2);
  near(screenPxPerMm(kept, 2), CSS_PX_PER_MM);
  storeScreen(kept, null, 2);
  near(screenPxPerMm(undefined, 1), CSS_PX_PER_MM);
});

test("what is printed on the paper", () => {
  assert.equal(printedScale({ speed: 12.5, gain: 5, zoom: 1 }), "12.5 mm/s   5 mm/mV");
  assert.equal(printedScale({ speed: 25, gain: 10, zoom: 0.8 }), "25 mm/s   10 mm/mV   shown at 80 %");
  assert.deepEqual([boundedZoom(0), boundedZoom(99), boundedZoom(3, 2)], [0.25, 4, 2]);
  assert.deepEqual([0, 2.5, 59.96, 64, 3671.5].map(clock), ["0 s", "2.5 s", "1:00 min", "1:04 min", "1:01:11.5 h"]);
  gridLines(2000, 7.559, 5).forEach((line, index) => near(line, index * 5 * 7.559, 0.5));
});
