import { openControl, openParts } from '../competitors.ts'
import { findWorkbenchProblem, MeasuredWorkbench } from '../peers/workbench.ts'
import type { BenchPage, Which } from '../programs/workbench-page.ts'
import { type Absent, atLeast, atMost, below, type Competitor, type Row } from '../row.ts'
import { quantile } from '../statistics.ts'

declare const bench: BenchPage

const KEYS = 100
const FLOOD_BYTES = 20_000_000
/** Size on the terminal, with two bytes per line end. */
const LINE = '0000000000 the quick brown fox jumps over the lazy dog 0123456789 abcdefg\r\n'
const OURS = 'workbench'
const LOCAL = 'xterm.js fed in the page'

/** Opens the competitors if the workbench can run; otherwise returns the reason. */
async function withWorkbench(
  open: (workbench: MeasuredWorkbench) => readonly Competitor[],
): Promise<readonly (Competitor | Absent)[]> {
  const absent = findWorkbenchProblem()
  return absent === undefined ? open(await MeasuredWorkbench.open()) : [{ name: OURS, absent }]
}

/** Presses keys, each after the previous one is painted; returns milliseconds. */
async function pressKeys({ page }: MeasuredWorkbench, which: Which): Promise<readonly number[]> {
  await page.evaluate((kind) => bench.startKeys(kind), which)
  let times: readonly number[] = []
  for (let pressed = 1; pressed <= KEYS; pressed += 1) {
    await page.press('x')
    times = await page.evaluate((count) => bench.awaitKeys(count), pressed)
  }
  await page.evaluate(() => bench.endKeys())
  return times
}

async function timeOurKeys(workbench: MeasuredWorkbench): Promise<readonly number[]> {
  await workbench.run('clear; cat > /dev/null')
  await workbench.waitFor(/^$/)
  await workbench.page.evaluate(() => bench.focus())
  const times = await pressKeys(workbench, 'sandwire')
  await workbench.interrupt()
  await workbench.waitFor(/> ?$/)
  return times
}

async function timeLocalKeys(workbench: MeasuredWorkbench): Promise<readonly number[]> {
  const { page } = workbench
  await page.evaluate(() => bench.openLocal())
  const times = await pressKeys(workbench, 'local')
  await page.evaluate(() => bench.closeLocal())
  return times
}

async function timeOurFlood(workbench: MeasuredWorkbench): Promise<number> {
  const mark = `flood-${crypto.randomUUID()}`
  const lines = Math.ceil(FLOOD_BYTES / LINE.length)
  await workbench.run(`[ -e flood ] || yes '${LINE.trimEnd()}' | head -n ${lines} > flood; clear`)
  await workbench.waitFor(/^> ?$/)
  const ms = workbench.page.evaluate((title) => bench.awaitTitle(title), mark)
  // Resolved after the other, which means that it is listening.
  await workbench.page.evaluate(() => undefined)
  await workbench.run(`cat flood; printf '\\033]0;${mark}\\007'; clear`)
  return FLOOD_BYTES / 1000 / (await ms)
}

async function timeLocalFlood({ page }: MeasuredWorkbench): Promise<number> {
  await page.evaluate(() => bench.openLocal())
  const ms = await page.evaluate((line, bytes) => bench.feedLocal(line, bytes), LINE, FLOOD_BYTES)
  await page.evaluate(() => bench.closeLocal())
  return FLOOD_BYTES / 1000 / ms
}

export const browserKeys: Row = {
  id: 'browser-keys',
  title: 'keystroke to painted glyph',
  unit: 'ms',
  digits: 1,
  about: 'From a key pressed in Chromium to the frame that shows its echo.',
  targets: [atMost(`${OURS} p50`, `${LOCAL} p50`, 2)],
  open: () =>
    withWorkbench((workbench) =>
      openParts({
        parts: [`${LOCAL} p50`, `${LOCAL} p99`, `${OURS} p50`, `${OURS} p99`],
        measure: async () => {
          const local = await timeLocalKeys(workbench)
          const ours = await timeOurKeys(workbench)
          return {
            [`${LOCAL} p50`]: quantile(local, 0.5),
            [`${LOCAL} p99`]: quantile(local, 0.99),
            [`${OURS} p50`]: quantile(ours, 0.5),
            [`${OURS} p99`]: quantile(ours, 0.99),
          }
        },
        close: () => workbench[Symbol.asyncDispose](),
      }),
    ),
}

export const browserFlood: Row = {
  id: 'browser-flood',
  title: 'output in the browser',
  unit: 'MB/s',
  digits: 1,
  about: '20 MB of text by cat, until the page has parsed the last byte.',
  targets: [atLeast(OURS, LOCAL, 0.8)],
  open: () =>
    withWorkbench((workbench) => [
      openControl(LOCAL, () => timeLocalFlood(workbench)),
      {
        name: OURS,
        side: 'ours',
        measure: () => timeOurFlood(workbench),
        [Symbol.asyncDispose]: () => workbench[Symbol.asyncDispose](),
      },
    ]),
}

/** A new session in a browser with a warm cache, from the navigation to the prompt. */
async function timePrompt({
  origin,
  page,
}: MeasuredWorkbench): Promise<{ 'page loaded': number; prompt: number }> {
  await page.goto(`${origin}/page.css`)
  await page.evaluate(() => {
    localStorage.clear()
    sessionStorage.clear()
  })
  await page.goto(origin)
  const prompt = await page.evaluate(() => bench.awaitText('$ '))
  const loaded = await page.evaluate(() => performance.getEntriesByType('navigation')[0]?.toJSON() as unknown)
  return { 'page loaded': Number(Reflect.get(Object(loaded), 'loadEventEnd')), prompt }
}

export const browserPrompt: Row = {
  id: 'browser-prompt',
  title: 'navigation to prompt',
  unit: 'ms',
  about: 'From the navigation to the frame with the prompt of a new shell, in a sandbox that runs.',
  targets: [below('prompt', 1000, 'ms')],
  open: () =>
    withWorkbench((workbench) =>
      openParts({
        parts: ['page loaded', 'prompt'],
        measure: () => timePrompt(workbench),
        close: () => workbench[Symbol.asyncDispose](),
      }),
    ),
}

/** Files that the page loads before any interaction. */
function firstFiles(html: string): readonly string[] {
  return [...html.matchAll(/(?:src|href)="(\/assets\/[^"]+\.(?:js|css))"/g)].map(([, path = '']) => path)
}

async function measureFirstLoad({ host }: MeasuredWorkbench): Promise<{ all: number; scripts: number }> {
  const html = await (await host.fetch('/')).text()
  let [all, scripts] = [0, 0]
  for (const path of firstFiles(html)) {
    const kib = Bun.gzipSync(await (await host.fetch(path)).bytes()).byteLength / 1024
    all += kib
    if (path.endsWith('.js')) scripts += kib
  }
  if (all === 0) throw new Error('The page names no files')
  return { all, scripts }
}

export const browserBundle: Row = {
  id: 'browser-bundle',
  title: 'first load of the workbench',
  unit: 'KiB',
  about: 'Scripts and styles before the editor, compressed with gzip.',
  rounds: 1,
  targets: [below('all', 300, 'KiB')],
  open: () =>
    withWorkbench((workbench) =>
      openParts({
        parts: ['scripts', 'all'],
        measure: () => measureFirstLoad(workbench),
        close: () => workbench[Symbol.asyncDispose](),
      }),
    ),
}
