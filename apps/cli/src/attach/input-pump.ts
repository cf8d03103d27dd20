import { type AttachHandle, withoutTerminalReplies } from '@sandwire/client'
import { type EscapeKey, splitAtEscape } from './escape-key.ts'

/** Typed input that may wait for the connection. Beyond it, reading stops, and with it the escape key. */
const MAX_TYPED_BYTES = 16 * 1024 * 1024

const CTRL_C: EscapeKey = { byte: 0x03, label: 'Ctrl+C' }

export interface TypingEvents {
  /** The escape key was pressed. */
  escaped(): void
  /** Input of a viewer was dropped. */
  refused(): void
}

/** Sends a pipe or file to the process with back-pressure, then the end of input. */
export async function pumpPipe(handle: AttachHandle, stdin: ReadableStream<Uint8Array>): Promise<void> {
  for await (const chunk of whileReadable(stdin)) await handle.write(chunk)
  handle.eof()
}

/** Treats a stdin that cannot be read, such as a folder or a closed terminal, as ended. */
async function* whileReadable(stdin: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* stdin
  } catch {
    // The same as the end of input.
  }
}

/** Sends input of a raw terminal, up to the escape key. */
export async function pumpTyping(
  handle: AttachHandle,
  stdin: ReadableStream<Uint8Array>,
  options: { readonly escape: EscapeKey | null; readonly events: TypingEvents },
): Promise<void> {
  let waitingBytes = 0
  for await (const chunk of whileReadable(stdin)) {
    const isViewer = handle.role === 'viewer'
    // A viewer without an escape key detaches with Ctrl+C.
    const escape = options.escape ?? (isViewer ? CTRL_C : null)
    const { before, isEscaped } = splitAtEscape(chunk, escape)
    if (isViewer) {
      if (withoutTerminalReplies(before).byteLength > 0) options.events.refused()
    } else if (before.byteLength > 0) {
      waitingBytes += before.byteLength
      const written = handle.write(before).then(() => (waitingBytes -= before.byteLength))
      // Usually not awaited: the escape key must work while input waits.
      if (waitingBytes > MAX_TYPED_BYTES) await written
    }
    if (isEscaped) {
      options.events.escaped()
      return
    }
  }
}
