// Runs in the workbench page: measures its first terminal, and a local xterm.js.
import type { TerminalController } from '@sandwire/react'
import { Unicode11Addon } from '@xterm/addon-unicode11'
import { WebglAddon } from '@xterm/addon-webgl'
import { Terminal } from '@xterm/xterm'

/** Bytes per write to the local terminal: the size of a frame on the wire. */
const CHUNK_BYTES = 64 * 1024
/** Writes that may be pending: as much as the window of an attachment. */
const MAX_WAITING = 16

export type Which = 'sandwire' | 'local'

/** Functions that the benchmark calls in the page. */
export interface BenchPage {
  /** Types into the first terminal. */
  type(text: string): void
  /** Text of the first terminal without trailing blank lines; empty if there is none. */
  readText(): string
  /** Focuses the first terminal. */
  focus(): void
  /** Opens a local echo terminal over the page, as large as that of the workbench. */
  openLocal(): void
  closeLocal(): void
  /** Starts timing keys, each from its press to the frame that shows its echo. */
  startKeys(which: Which): void
  /** Resolves with the times once `count` keys are timed. */
  awaitKeys(count: number): Promise<readonly number[]>
  endKeys(): void
  /** Milliseconds until the local terminal has parsed `bytes` bytes of repeated lines. */
  feedLocal(line: string, bytes: number): Promise<number>
  /** Milliseconds from now until the first terminal has a title. */
  awaitTitle(title: string): Promise<number>
  /** Milliseconds from the navigation until a text was first in the first terminal. */
  awaitText(text: string): Promise<number>
}

declare const controllers: () => readonly TerminalController[]

let local: { readonly terminal: Terminal; readonly element: HTMLElement } | undefined

let keys: { readonly times: number[]; readonly end: () => void } | undefined
/** Resolves when the next time is recorded. */
let waiter: (() => void) | undefined

function lengthOf(which: Which): number {
  if (which === 'sandwire') return controllers()[0]?.surface.readText().trimEnd().length ?? 0
  const line = local?.terminal.buffer.active.getLine(0)
  return line?.translateToString(true).length ?? 0
}

/** Resolves after the frame in which the condition becomes true has been painted. */
function afterPaint(isTrue: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => {
      const isNow = isTrue()
      requestAnimationFrame(() => {
        if (!isNow) return look()
        const { port1, port2 } = new MessageChannel()
        port1.addEventListener('message', () => resolve())
        port1.start()
        port2.postMessage(undefined)
      })
    }
    look()
  })
}

const page: BenchPage = {
  type(text) {
    controllers()[0]?.type(text)
  },

  readText() {
    return controllers()[0]?.surface.readText().trimEnd() ?? ''
  },

  focus() {
    controllers()[0]?.surface.focus()
  },

  openLocal() {
    const { cols = 80, rows = 24 } = controllers()[0]?.surface ?? {}
    const element = document.createElement('div')
    element.style.cssText = 'position: fixed; inset: 0; z-index: 99'
    document.body.append(element)
    const terminal = new Terminal({ cols, rows, scrollback: 10_000, allowProposedApi: true })
    terminal.loadAddon(new Unicode11Addon())
    terminal.unicode.activeVersion = '11'
    terminal.open(element)
    // Same renderer as the workbench.
    if (document.querySelector('.terminal-surface canvas') !== null) terminal.loadAddon(new WebglAddon())
    terminal.onData((text) => terminal.write(text))
    terminal.focus()
    local = { terminal, element }
  },

  closeLocal() {
    local?.terminal.dispose()
    local?.element.remove()
    local = undefined
  },

  startKeys(which) {
    const times: number[] = []
    const onKey = (): void => {
      const startMs = performance.now()
      const before = lengthOf(which)
      void afterPaint(() => lengthOf(which) > before).then(() => {
        times.push(performance.now() - startMs)
        waiter?.()
      })
    }
    addEventListener('keydown', onKey, true)
    keys = { times, end: () => removeEventListener('keydown', onKey, true) }
  },

  async awaitKeys(count) {
    while ((keys?.times.length ?? 0) < count)
      await new Promise<void>((resolve) => {
        waiter = resolve
      })
    return keys?.times ?? []
  },

  endKeys() {
    keys?.end()
    keys = undefined
  },

  async feedLocal(line, bytes) {
    const text = line.repeat(Math.ceil(CHUNK_BYTES / line.length))
    const chunk = new TextEncoder().encode(text)
    const startMs = performance.now()
    const waiting: Promise<void>[] = []
    for (let fed = 0; fed < bytes; fed += chunk.byteLength) {
      if (waiting.length >= MAX_WAITING) await waiting.shift()
      waiting.push(new Promise((resolve) => local?.terminal.write(chunk, resolve)))
    }
    await Promise.all(waiting)
    return performance.now() - startMs
  },

  awaitTitle(title) {
    const startMs = performance.now()
    return new Promise((resolve) => {
      const stop = controllers()[0]?.state.subscribe((state) => {
        if (state.title !== title) return
        stop?.()
        resolve(performance.now() - startMs)
      })
    })
  },

  async awaitText(text) {
    await afterPaint(() => controllers()[0]?.surface.readText().includes(text) === true)
    return performance.now()
  },
}

Object.assign(globalThis, { bench: page })
