import { ERRORS, SandwireError } from '@sandwire/protocol'
import { z } from 'zod'
import type { Buckets } from '../http/buckets.ts'
import type { SandboxCall } from '../sandbox/call.ts'
import { callFields } from '../sandbox/pass-through.ts'
import { type ConversationEntry, type LiveFrame, messageIdOf } from './frames.ts'
import type { ConversationRecord } from './record.ts'
import type { ConversationState } from './state.ts'
import type { ConversationStore } from './store.ts'
import type { UnreadFrames } from './unread-frames.ts'

/** Browsers of one conversation. */
const MAX_SOCKETS = 256
/** Browsers of one account in a conversation, so that none takes those of others. */
const MAX_ACCOUNT_SOCKETS = 32
/** An authorization that is older is checked again before anything is sent or accepted. */
const CHECK_MS = 10_000
/** Entries in one read of the store. */
const BATCH = 200
/** Try again later, of RFC 6455: here with the number of the last entry. */
const CLOSE_TRY_AGAIN = 1013

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
  /** Frames that an account may send, and that may be refused until its socket is closed: in all conversations. */
  readonly accepted: Buckets
  readonly refused: Buckets
  readonly unread: UnreadFrames
  /** Whether the caller may watch now, and whether it may steer; undefined: not any more. */
  readonly authorize: (attachment: SocketAttachment) => Promise<{ readonly maySteer: boolean } | undefined>
}

/** The browsers of a conversation. Their sockets hibernate with the object. */
export class ConversationSockets {
  readonly #deps: SocketDependencies
  /** Frames are sent in order, also while authorizations are checked. */
  #sending: Promise<void> = Promise.resolve()

  constructor(deps: SocketDependencies) {
    this.#deps = deps
  }

  /** False for a frame that is not looked at, because its account sends more than people do. If that goes on, the socket is closed. */
  admits(socket: WebSocket, data: string | ArrayBuffer): boolean {
    const { accepted, refused, nowMs } = this.#deps
    const attachment = attachmentOf(socket)
    if (attachment === undefined) return false
    const { call, socket: name } = attachment
    if (accepted.take(call.identity, nowMs())) return true
    if (refused.take(call.identity, nowMs()))
      this.refuse(name, { code: 'rate_limited', message: 'Too many frames; send it later' }, data)
    else close(socket, ERRORS.rate_limited.close, 'rate_limited')
    return false
  }

  /** Throws `too_many_attachments` when an account cannot open another socket. */
  checkRoom(account: string): void {
    const { ctx, unread } = this.#deps
    const refuse = (problem: string): never => {
      throw new SandwireError('too_many_attachments', `Cannot open the conversation: ${problem}`)
    }
    if (ctx.getWebSockets(tagOf(account)).length >= MAX_ACCOUNT_SOCKETS)
      refuse('too many of your clients follow it')
    if (this.count >= MAX_SOCKETS) refuse('too many clients follow it')
    if (unread.isFull(account)) refuse('your other clients do not read; close them')
  }

  get count(): number {
    return this.#deps.ctx.getWebSockets().length
  }

  /** A socket is closed. */
  closed(socket: WebSocket): void {
    const attachment = attachmentOf(socket)
    if (attachment !== undefined) this.#deps.unread.closed(attachment.call.identity, attachment.socket)
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
    ctx.acceptWebSocket(server, [socket, tagOf(call.identity)])
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
    const attachment = attachmentOf(server)
    if (attachment === undefined) return
    const push = (text: string): boolean => this.#push(server, attachment, text)
    const send = (frame: LiveFrame): boolean => push(JSON.stringify(frame))
    const { id, sandbox, sessionId } = record
    send({ type: 'connected', conversationId: id, sessionId: sessionId ?? id, sandbox })
    let seq = after
    for (let batch = store.entries(seq, BATCH); batch.length > 0; batch = store.entries(seq, BATCH)) {
      if (!batch.every((entry) => push(formatEntry(entry)))) return
      seq = batch.at(-1)?.seq ?? seq
    }
    send({ type: 'history_end', seq: state.snapshot.lastSeq })
    send(state.stateFrame)
    send(state.restorePoints)
    send({ type: 'connection_status', sandboxStatus: state.sandboxStatus })
  }

  /** The caller of a socket if its authorization still holds; else the socket is closed. */
  async callerOf(socket: WebSocket): Promise<SocketAttachment | undefined> {
    const { nowMs, authorize } = this.#deps
    const attachment = attachmentOf(socket)
    if (attachment === undefined) return this.#close(socket)
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

  /** Says that a frame was refused. */
  refuse(
    name: string,
    { code, message }: { readonly code: string; readonly message: string },
    data: string | ArrayBuffer,
  ): void {
    const id = messageIdOf(data)
    this.send(name, { type: 'error', code, message, ...(id === undefined ? {} : { id }) })
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
        if (caller !== undefined) texts.every((text) => this.#push(socket, caller, text))
      }
    })
  }

  /** Sends a frame; false when the socket is closed, also because it was sent too much. */
  #push(socket: WebSocket, { call, socket: name }: SocketAttachment, text: string): boolean {
    if (!this.#deps.unread.take(call.identity, name, text.length)) {
      close(socket, CLOSE_TRY_AGAIN, 'connect again to read on')
      return false
    }
    try {
      socket.send(text)
      return true
    } catch {
      // The browser is gone; its close event follows.
      return false
    }
  }

  #close(socket: WebSocket): undefined {
    close(socket, ERRORS.revoked.close, 'revoked')
  }
}

function attachmentOf(socket: WebSocket): SocketAttachment | undefined {
  return attachmentSchema.safeParse(socket.deserializeAttachment()).data
}

/** Finds the sockets of an account. */
function tagOf(account: string): string {
  return `account ${account}`
}

function close(socket: WebSocket, code: number, reason: string): void {
  try {
    socket.close(code, reason)
  } catch {
    // Closed already.
  }
}
