import { OutputLog } from '../output-log.ts'
import { ResizeLog } from '../resize-log.ts'
import { InputReceiver } from './input-receiver.ts'
import { ConnectionTable } from './connection-table.ts'
import { EffectBuffer } from './effect-buffer.ts'
import { OutputPump } from './output-pump.ts'
import { AttachmentList } from './attachment-list.ts'
import { SessionLifecycle } from './session-lifecycle.ts'
import type { SessionOptions } from './session-options.ts'
import { FlowControl } from './flow-control.ts'

/** The parts of a session. Functions that need several of them take all. */
export interface SessionParts {
  readonly options: SessionOptions
  /** Effects of the call in progress. */
  readonly effects: EffectBuffer
  readonly log: OutputLog
  readonly resizes: ResizeLog
  /** Attachments and the lease. */
  readonly attachments: AttachmentList
  /** Input for the process. */
  readonly input: InputReceiver
  /** Output for attachments. */
  readonly pump: OutputPump
  /** Connections, before and after their hello. */
  readonly connections: ConnectionTable
  readonly lifecycle: SessionLifecycle
  /** Pauses and resumes the process. */
  readonly flow: FlowControl
}

export function createParts(options: SessionOptions, nowMs: number): SessionParts {
  const { limits } = options
  const effects = new EffectBuffer()
  const log = new OutputLog(limits.logBytes)
  const resizes = new ResizeLog(80, 24)
  const isPty = options.mode === 'pty'
  return {
    options,
    effects,
    log,
    resizes,
    attachments: new AttachmentList(effects),
    input: new InputReceiver(effects, limits.inputWindowBytes),
    pump: new OutputPump({ log, resizes, effects, isPty, turnBytes: limits.turnBytes }),
    connections: new ConnectionTable(limits.messagesPerSecond),
    lifecycle: new SessionLifecycle(nowMs),
    flow: new FlowControl({ log, effects, options }),
  }
}
