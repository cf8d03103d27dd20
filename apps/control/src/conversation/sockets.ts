import { ERRORS } from '@sandwire/protocol'
import { z } from 'zod'
import { Buckets } from '../http/buckets.ts'
import type { SandboxCall } from '../sandbox/call.ts'
import { callFields } from '../sandbox/pass-through.ts'
import type { ConversationEntry, LiveFrame } from './frames.ts'
import type { ConversationRecord } from './record.ts'
import type { ConversationState } from './state.ts'
import type { ConversationStore } from './store.ts'

/** Browsers of one conversation. */
export const MAX_SOCKETS = 64
/** An authorization that is older is checked again before anything is sent or accepted. */
const CHECK_MS = 10_000

/** Frames of one account: each is stored and audited. */
const FRAME_RATE = { perSecond: 10, burst: 200, max: MAX_SOCKETS }
/** Entries in one read of the store. */
const BATCH = 200

/** What is kept with a socket while the object is evicted. */
const attachmentSchema = z.object({
  socket: z.string(),
  call: z.object(callFields),
  /** A ticket for viewers takes the right to send messages away. */
  maySteer: z.boolean(),
  hasStoredSignIn: z.boolean(),
  checkedMs: z.number(),
})
export type SocketAttachment = z.infer<typeof attachmentSchema>

/** A frame with its number, as browsers get it. */
export function formatEntry({ seq, atMs, frame }: ConversationEntry): string {
  return JSON.stringify({ ...frame, seq, atMs })
}

export interface SocketDependencies {
  readonly ctx: Pick<DurableObjectState, 'getWebSockets' | 'acceptWebSocket'>
  readonly nowMs: () => number
  /** Whether the caller may watch now, and whether it may steer; undefined: not any more. */
  readonly authorize: (attachment: SocketAttachment) => Promise<{ readonly maySteer: boolean } | undefined>
}

/** The browsers of a conversation. Their sockets hibernate with the object. */
export class ConversationSockets {
  readonly #deps: SocketDependencies
  readonly #rate = new Buckets(FRAME_RATE)
  /** Frames are sent in order, also while authorizations are checked. */
  #sending: Promise<void> = Promise.resolve()

  constructor(deps: SocketDependencies) {
    this.#deps = deps
  }

  /** False when an account sends more frames than people do. */
  admits({ call }: SocketAttachment): boolean {
    return this.#rate.take(call.identity, this.#deps.nowMs())
  }

  get count(): number {
    return this.#deps.ctx.getWebSockets().length
  }

  accept(
    server: WebSocket,
    {
      call,
      maySteer,
      hasStoredSignIn,
    }: Pick<SocketAttachment, 'maySteer' | 'hasStoredSignIn'> & { call: SandboxCall },
  ): void {
    const { ctx, nowMs } = this.#deps
    const { scopes, ...rest } = call
    const socket = crypto.randomUUID()
    const attachment: SocketAttachment = {
      socket,
      call: { ...rest, scopes: [...scopes] },
      maySteer,
      hasStoredSignIn,
      checkedMs: nowMs(),
    }
    ctx.acceptWebSocket(server, [socket])
    server.serializeAttachment(attachment)
  }

  /** Sends what is stored, then what is the case now. */
  replay(
    server: WebSocket,
    after: number,
    {
      record,
      store,
      state,
    }: {
      readonly record: ConversationRecord
      readonly store: Pick<ConversationStore, 'entries'>
      readonly state: ConversationState
    },
  ): void {
    const send = (frame: LiveFrame): void => server.send(JSON.stringify(frame))
    const { id, sandbox, sessionId } = record
    send({ type: 'connected', conversationId: id, sessionId: sessionId ?? id, sandbox })
    let seq = after
    for (let batch = store.entries(seq, BATCH); batch.length > 0; batch = store.entries(seq, BATCH)) {
      for (const entry of batch) server.send(formatEntry(entry))
      seq = batch.at(-1)?.seq ?? seq
    }
    send({ type: 'history_end', seq: state.snapshot.lastSeq })
    send({ type: 'connection_status', sandboxStatus: state.sandboxStatus })
  }

  /** The caller of a socket if its authorization still holds; else the socket is closed. */
  async callerOf(socket: WebSocket): Promise<SocketAttachment | undefined> {
    const { nowMs, authorize } = this.#deps
    const parsed = attachmentSchema.safeParse(socket.deserializeAttachment())
    if (!parsed.success) return this.#close(socket)
    const attachment = parsed.data
    const now = nowMs()
    if ((attachment.call.expiresMs ?? Number.POSITIVE_INFINITY) <= now) return this.#close(socket)
    if (now - attachment.checkedMs < CHECK_MS && now >= attachment.checkedMs) return attachment
    const access = await authorize(attachment)
    if (access === undefined) return this.#close(socket)
    const checked = { ...attachment, maySteer: attachment.maySteer && access.maySteer, checkedMs: now }
    socket.serializeAttachment(checked)
    return checked
  }

  broadcast(texts: readonly string[]): void {
    if (texts.length > 0) this.#send(() => this.#deps.ctx.getWebSockets(), texts)
  }

  send(name: string, frame: LiveFrame): void {
    this.#send(() => this.#deps.ctx.getWebSockets(name), [JSON.stringify(frame)])
  }

  /** Resolves when everything so far was sent. */
  get drained(): Promise<void> {
    return this.#sending
  }

  closeAll(code: number, reason: string): void {
    for (const socket of this.#deps.ctx.getWebSockets()) close(socket, code, reason)
  }

  #send(find: () => readonly WebSocket[], texts: readonly string[]): void {
    this.#sending = this.#sending.then(async () => {
      for (const socket of find()) {
        const caller = await this.callerOf(socket).catch(() => undefined)
        if (caller !== undefined) for (const text of texts) trySend(socket, text)
      }
    })
  }

  #close(socket: WebSocket): undefined {
    close(socket, ERRORS.revoked.close, 'revoked')
  }
}

function trySend(socket: WebSocket, text: string): void {
  try {
    socket.send(text)
  } catch {
    // The browser is gone; its close event follows.
  }
}

function close(socket: WebSocket, code: number, reason: string): void {
  try {
    socket.close(code, reason)
  } catch {
    // Closed already.
  }
}
