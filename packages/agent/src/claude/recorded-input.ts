import { boundText } from '../bound.ts'
import type { DriverEffect, DriverInput } from '../driver.ts'
import type { RecordedInput } from '../journal.ts'
import type { Redactor } from '../redact.ts'

export const MAX_STDERR_CHARS = 16 * 1024

/** Stored for a piece of a message that changed the state: only that it came. */
export const PIECE: RecordedInput = { kind: 'line', line: { type: 'stream_event', event: {} } }

/** What the journal stores of an input that had these effects. Whole lines are the driver's. */
export function recordedInput(
  input: DriverInput,
  effects: readonly DriverEffect[],
  redactor: Redactor,
): RecordedInput | undefined {
  if (effects.length === 0) return undefined
  switch (input.kind) {
    case 'line':
      return effects.some(({ kind }) => kind === 'emit') ? PIECE : undefined
    case 'stderr':
      return { kind: 'stderr', text: boundText(redactor.text(input.text), MAX_STDERR_CHARS).text }
    case 'message': {
      // No event follows from the blocks, which may be images.
      const { content: _, ...message } = input
      return redactor.value(message) as RecordedInput
    }
    case 'setting':
    case 'approval':
    case 'stop':
    case 'not_started':
      return redactor.value(input) as RecordedInput
    case 'started':
    case 'exit':
    case 'tick':
    case 'interrupt':
      return input
  }
}
