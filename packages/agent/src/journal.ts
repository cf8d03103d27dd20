import type { AgentDriver, DriverInput } from './driver.ts'
import type { NumberedEvent, RunEvent } from './event.ts'
import type { Json } from './json.ts'

/**
 * An input of a driver as it is stored: redacted, and bounded. The same inputs, given to a new driver at the same times, yield the
 * same events. Left out are pieces of partial messages, which whole lines repeat, and ticks without effect.
 */
export type RecordedInput =
  /** A line of the program's stdout that is a JSON object, as its driver bounds it. */
  | { readonly kind: 'line'; readonly line: Json }
  /** Another line. `isCut`: the beginning of one that was too long. */
  | { readonly kind: 'line'; readonly text: string; readonly isCut?: boolean }
  | Exclude<DriverInput, { readonly kind: 'line' }>

/** A journal entry: an input of the driver, or an event that sandboxd reports by itself. */
export type JournalEntry = {
  /** From 1, without holes. Not the number of an event. */
  readonly seq: number
  /** Wall time in milliseconds since the epoch; also that of the events that follow from it. */
  readonly atMs: number
  /** Time of the driver. */
  readonly nowMs: number
  /** Sequence number of the last event before those that follow from this entry. */
  readonly eventSeq: number
} & (RecordedInput | { readonly kind: 'event'; readonly event: RunEvent })

/** A line of a partial message. Sent to live viewers that keep up, and stored nowhere, so that it has no number. */
export interface PartialLine {
  readonly kind: 'line'
  readonly line: Json
}

/** The events of a journal, in order. `driver` has the options of the one that recorded it, and has had no input yet. */
export function* deriveEvents(
  entries: Iterable<JournalEntry>,
  driver: AgentDriver,
): Generator<NumberedEvent> {
  for (const entry of entries) {
    const { atMs, eventSeq } = entry
    let seq = eventSeq
    for (const event of eventsOf(entry, driver)) {
      seq += 1
      yield { seq, atMs, event }
    }
  }
}

function eventsOf(entry: JournalEntry, driver: AgentDriver): readonly RunEvent[] {
  if (entry.kind === 'event') return [entry.event]
  const effects = driver.on(toInput(entry), entry.nowMs)
  return effects.flatMap((effect) => (effect.kind === 'emit' ? [effect.event] : []))
}

function toInput(recorded: RecordedInput): DriverInput {
  if (recorded.kind !== 'line' || !('line' in recorded)) return recorded
  return { kind: 'line', text: JSON.stringify(recorded.line) }
}
