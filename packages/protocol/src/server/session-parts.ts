import { OutputLog } from '../output-log.ts'
import { ResizeLog } from '../resize-log.ts'
import { InputGate } from './input-gate.ts'
import { LinkTable } from './link-table.ts'
import { Outbox } from './outbox.ts'
import { OutputPump } from './output-pump.ts'
import { Roster } from './roster.ts'
import { SessionLife } from './session-life.ts'
import type { SessionOptions } from './session-options.ts'
import { SourceValve } from './source-valve.ts'

/** What a session is made of. Each part knows one thing; the rules that touch several take them all. */
export interface SessionParts {
  readonly options: SessionOptions
  /** Effects of the call in progress. */
  readonly outbox: Outbox
  readonly log: OutputLog
  readonly resizes: ResizeLog
  /** Attachments, and who drives. */
  readonly roster: Roster
  /** Input on its way to the process. */
  readonly gate: InputGate
  /** Output on its way to attachments. */
  readonly pump: OutputPump
  /** Connections, before and after their hello. */
  readonly links: LinkTable
  readonly life: SessionLife
  /** Whether the process may go on writing. */
  readonly valve: SourceValve
}

export function createParts(options: SessionOptions, nowMs: number): SessionParts {
  const { limits } = options
  const outbox = new Outbox()
  const log = new OutputLog(limits.logBytes)
  const resizes = new ResizeLog(80, 24)
  const isPty = options.mode === 'pty'
  return {
    options,
    outbox,
    log,
    resizes,
    roster: new Roster(outbox),
    gate: new InputGate(outbox, limits.inputWindowBytes),
    pump: new OutputPump({ log, resizes, outbox, isPty, turnBytes: limits.turnBytes }),
    links: new LinkTable(limits.messagesPerSecond),
    life: new SessionLife(nowMs),
    valve: new SourceValve({ log, outbox, options }),
  }
}
