import { SerializeAddon } from '@xterm/addon-serialize'
import { Unicode11Addon } from '@xterm/addon-unicode11'
import { Terminal } from '@xterm/headless'
import { limits } from '@sandwire/protocol'
import { ScreenModes } from './screen-modes.ts'
import type { ScreenReply, ScreenRequest } from './screen-protocol.ts'

declare const self: Worker

interface Screen {
  readonly terminal: Terminal
  readonly serializer: SerializeAddon
  readonly modes: ScreenModes
}

const screens = new Map<string, Screen>()
const encoder = new TextEncoder()

function open(cols: number, rows: number): Screen {
  const terminal = new Terminal({ cols, rows, scrollback: limits.SCROLLBACK_LINES, allowProposedApi: true })
  const serializer = new SerializeAddon()
  terminal.loadAddon(serializer)
  // Characters are as wide here as in the terminals that the screen is drawn in; else what stands behind an emoji would move.
  terminal.loadAddon(new Unicode11Addon())
  terminal.unicode.activeVersion = '11'
  return { terminal, serializer, modes: new ScreenModes(terminal) }
}

/** The bytes that draw the screen, with as much of its scrollback as fits. */
function serialize({ terminal, serializer, modes }: Screen): Uint8Array {
  let scrollback = terminal.buffer.normal.baseY
  for (;;) {
    const bytes = encoder.encode(serializer.serialize({ scrollback }) + modes.serialize())
    if (bytes.byteLength <= limits.MAX_SNAPSHOT_BYTES) return bytes
    if (scrollback === 0) return new Uint8Array(0)
    // Lines differ in length, so that a share of them is a guess, and one below it soon holds.
    scrollback = Math.floor((scrollback * limits.MAX_SNAPSHOT_BYTES * 0.9) / bytes.byteLength)
  }
}

function reply(message: ScreenReply): void {
  self.postMessage(message)
}

self.addEventListener('message', (event: MessageEvent<ScreenRequest>) => {
  const request = event.data
  if (request.kind === 'open') {
    screens.set(request.session, open(request.cols, request.rows))
    return
  }
  const screen = screens.get(request.session)
  switch (request.kind) {
    case 'resize':
      // Parsing is asynchronous: an empty write puts the resize behind what was fed before.
      screen?.terminal.write('', () => screen.terminal.resize(request.cols, request.rows))
      return
    case 'feed':
      if (screen === undefined) reply({ id: request.id })
      else screen.terminal.write(request.bytes, () => reply({ id: request.id }))
      return
    case 'render':
      if (screen === undefined) reply({ id: request.id })
      else screen.terminal.write('', () => reply({ id: request.id, data: serialize(screen) }))
      return
    case 'close':
      screen?.terminal.dispose()
      screens.delete(request.session)
      return
  }
})
