import { afterAll, describe, expect, test } from 'bun:test'
import { DEFAULT_LIMITS, ServerSession } from '@sandwire/protocol'
import { Terminal } from '@xterm/headless'
import { ScreenModel } from './screen-model.ts'
import { ScreenRenderer } from './screen-renderer.ts'

const workers: Worker[] = []
const renderer = new ScreenRenderer(() => {
  const worker = new Worker(new URL('./screen-worker.ts', import.meta.url).href)
  workers.push(worker)
  return worker
})
afterAll(() => {
  for (const worker of workers) worker.terminate()
})

let minted = 0
function open(logBytes = DEFAULT_LIMITS.logBytes): { session: ServerSession; model: ScreenModel } {
  minted += 1
  const options = {
    id: `s${minted}`,
    mode: 'pty',
    overflow: 'trim',
    keepSeconds: 60,
    limits: { ...DEFAULT_LIMITS, logBytes, graceMs: 0 },
  } as const
  const session = new ServerSession(options, 0)
  session.start({ env: {}, cols: 20, rows: 4 }, 0)
  return { session, model: new ScreenModel(session, renderer) }
}

function write(target: { session: ServerSession; model: ScreenModel }, text: string): void {
  target.session.output('stdout', new TextEncoder().encode(text), 1)
  target.model.outputArrived()
}

/** The lines a terminal shows after being fed. */
async function linesOf(data: Uint8Array | string, cols = 20, rows = 4): Promise<string[]> {
  const terminal = new Terminal({ cols, rows, allowProposedApi: true })
  await new Promise<void>((resolve) => terminal.write(data, resolve))
  const { active } = terminal.buffer
  return Array.from(
    { length: rows },
    (_, row) => active.getLine(active.viewportY + row)?.translateToString(true) ?? '',
  )
}

describe('ScreenModel', () => {
  test('renders the screen at the end of the log', async () => {
    const target = open()
    write(target, 'one\r\ntwo\u001b[31mred\u001b[0m')
    const snapshot = await target.model.render()
    expect(snapshot).toMatchObject({ at: target.session.log.end, cols: 20, rows: 4, exact: true })
    expect(await linesOf(snapshot.data)).toEqual(['one', 'twored', '', ''])
  })

  test('renders again after more output, and after a split character', async () => {
    const target = open()
    write(target, 'a')
    await target.model.render()
    const euro = new TextEncoder().encode('€')
    target.session.output('stdout', euro.subarray(0, 2), 1)
    await target.model.render()
    target.session.output('stdout', euro.subarray(2), 1)
    expect(await linesOf((await target.model.render()).data)).toEqual(['a€', '', '', ''])
  })

  test('stays exact when the log trims bytes that were fed before', async () => {
    const target = open(65_536)
    write(target, '\u001b[?1049h\u001b[Htop')
    for (let index = 0; index < 40; index += 1)
      write(target, `\u001b[2;1H${'x'.repeat(4_000)}\u001b[2;1Hline ${index}   `)
    expect(target.session.log.start).toBeGreaterThan(0)
    const snapshot = await target.model.render()
    expect(snapshot.exact).toBe(true)
    const reference = open()
    write(reference, '\u001b[?1049h\u001b[Htop')
    for (let index = 0; index < 40; index += 1)
      write(reference, `\u001b[2;1H${'x'.repeat(4_000)}\u001b[2;1Hline ${index}   `)
    expect(await linesOf(snapshot.data)).toEqual(await linesOf((await reference.model.render()).data))
  })

  test('continues with another thread after one has failed', async () => {
    const target = open()
    write(target, 'before')
    const rendering = target.model.render()
    workers.at(-1)?.dispatchEvent(new ErrorEvent('error'))
    expect((await rendering).exact).toBe(false)
    write(target, ' and after')
    const snapshot = await target.model.render()
    expect(snapshot.exact).toBe(true)
    expect(await linesOf(snapshot.data)).toEqual(['before and after', '', '', ''])
  })

  test('is not exact when the log trimmed bytes that were not fed', async () => {
    const target = open(65_536)
    target.session.output('stdout', new TextEncoder().encode('lost '.repeat(40_000)), 1)
    expect(target.session.log.start).toBeGreaterThan(0)
    expect((await target.model.render()).exact).toBe(false)
  })
})
