import { DurableObject } from 'cloudflare:workers'
import { KeyedSerializer } from '@sandwire/async'
import { SandwireError } from '@sandwire/protocol'
import type { Env } from '../env.ts'
import { CODE_HEADER, respondError } from '../http/respond.ts'
import { errorOf, type Outcome, settle, unwrap } from '../outcome.ts'
import { type AgentNeed, auditAgentCall, authorizeRestore, hasLostAccess } from '../run/access.ts'
import type { Published } from '../run/published.ts'
import type { RestorePointsView, RestoreTarget } from '../run/turns.ts'
import { runtimeOf } from '../runtime.ts'
import { ObjectAlarm } from '../sandbox/alarm.ts'
import type { SandboxCall } from '../sandbox/call.ts'
import { noSuchConversation } from '../sandbox/not-found.ts'
import { type AgentWork, failureOf, openAgentWork } from './agent-work.ts'
import { authorizeConversation, maySteer as mayCallerSteer, recheckSocket } from './authorization.ts'
import { parseConversationCall } from './call.ts'
import { type AgentMessage, groupEvents } from './agent-message.ts'
import { EventSocket } from './event-socket.ts'
import { decodeClientFrame, type EntryRange, type LiveFrame } from './frames.ts'
import { openMessageSender } from './message-api.ts'
import type { MessageSender } from './message-outbox.ts'
import { type ConversationPublication, ConversationPublisher, type PublishableChange } from './publish.ts'
import type { ConversationRecord } from './record.ts'
import { refusalOf } from './refuse.ts'
import { readSpent, reportConversation } from './report.ts'
import { toStreamEvent } from './sdk-message.ts'
import { restorePointsOf } from './restore.ts'
import { ConversationSockets, formatEntry, type SocketAttachment } from './sockets.ts'
import { CONTROL, NEW_CONVERSATION } from './snapshot.ts'
import { type ConversationInput, ConversationState } from './state.ts'
import { ConversationStore } from './store.ts'
import { type ConversationView, viewOf } from './view.ts'
import type { Work } from './work.ts'

/** While an agent works, an object that was evicted connects again after this time at the latest. */
const WATCH_MS = 15_000
/** Minimum time between two alarms. */
const MIN_PAUSE_MS = 250
const DAY_MS = 24 * 60 * 60 * 1000
const CLOSE_GOING_AWAY = 1001
/** Answered without waking the object. */
const PING = new WebSocketRequestResponsePair('{"type":"ping"}', '{"type":"pong"}')

/** One conversation with an agent: its browsers, its entries, and the connection to its sandbox while the agent works. */
export class ConversationObject extends DurableObject<Env> {
  readonly #store: ConversationStore
  readonly #alarm: ObjectAlarm
  readonly #sockets: ConversationSockets
  /** Frames of browsers are taken one after the other. */
  readonly #frames = new KeyedSerializer()
  #state: ConversationState | undefined
  readonly #sender: MessageSender
  #work: Promise<AgentWork> | undefined
  #agentSocket: EventSocket | undefined
  #isAdvancing = false
  #mustAdvance = false

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env)
    const { metrics, nowMs, conversations } = runtimeOf(env)
    this.#store = new ConversationStore(ctx.storage.sql)
    this.#alarm = new ObjectAlarm(ctx.storage)
    this.#sockets = new ConversationSockets({
      ...conversations,
      ctx,
      nowMs,
      authorize: (each) => recheckSocket(this.env, this.#record, each),
    })
    this.#sender = openMessageSender(env, {
      outbox: this.#store.outbox,
      sessionId: () => this.#record.sessionId ?? this.#record.id,
      wakeBy: (atMs) => this.#alarm.setBy(atMs),
    })
    ctx.setWebSocketAutoResponse(PING)
    metrics.count('sandwire_objects_constructed_total', { class: 'conversation' })
  }

  /** Stores a new conversation; an existing one is returned as it is. */
  create(record: ConversationRecord, call: SandboxCall): Promise<Outcome<ConversationView>> {
    return this.#run(async () => {
      if (this.#store.read() === undefined) {
        await auditAgentCall(this.env, record, call, Date.now())
        this.#store.insert(record, NEW_CONVERSATION)
        await this.#alarm.setBy(Date.now() + DAY_MS)
      }
      return this.#view()
    })
  }

  describe(call: SandboxCall): Promise<Outcome<ConversationView>> {
    return this.#run(async () => {
      await this.#authorize(call, 'watch')
      await readSpent(this.env, this.#store)
      return this.#view()
    })
  }

  entries(call: SandboxCall, after: number, limit: number): Promise<Outcome<string>> {
    return this.#run(async () => {
      await this.#authorize(call, 'watch')
      const range: EntryRange = {
        entries: this.#store.entries(after, limit),
        lastSeq: this.#conversation.snapshot.lastSeq,
      }
      // As JSON: objects of unknown content cannot be passed between objects.
      return JSON.stringify(range)
    })
  }

  /** Stores a message, as a frame of a browser does; the same id again stores nothing. */
  send(
    call: SandboxCall,
    message: { readonly id: string; readonly text: string },
  ): Promise<Outcome<{ readonly id: string; readonly seq: number | null }>> {
    return this.#run(async () => {
      await this.#authorize(call, 'steer')
      const sent = await this.#frames.run('frames', async () => {
        await this.#admitMessage()
        await auditAgentCall(this.env, this.#record, call, Date.now())
        const sender = { socket: '', account: call.identity, name: call.name }
        const { id, text } = message
        return this.#take({ type: 'frame', frame: { type: 'message', content: text, id }, sender, newId: id })
      })
      const reply = sent.find((effect) => effect.kind === 'send')?.frame
      if (reply?.type === 'message_ack') return { id: reply.id, seq: reply.seq }
      throw refusalOf(reply)
    })
  }

  /** Messages with the files that are kept for them. */
  restorePoints(call: SandboxCall): Promise<Outcome<RestorePointsView>> {
    return this.#run(async () => {
      await this.#authorize(call, 'watch')
      return restorePointsOf(this.#conversation.snapshot)
    })
  }

  /** Begins to restore the files to those of the time at which a message was sent, or to undo that. */
  restoreFiles(call: SandboxCall, target: RestoreTarget): Promise<Outcome<RestorePointsView>> {
    return this.#run(async () => {
      await authorizeRestore(this.env, this.#record, call, noSuchConversation)
      await auditAgentCall(this.env, this.#record, call, Date.now())
      const sender = { socket: '', account: call.identity, name: call.name }
      const effects = this.#take({ type: 'restore', target, key: crypto.randomUUID(), sender })
      const reply = effects.find((effect) => effect.kind === 'send')?.frame
      if (reply !== undefined) throw refusalOf(reply)
      return restorePointsOf(this.#conversation.snapshot)
    })
  }

  /** What would be published. Starts no sandbox. */
  showChange(call: SandboxCall): Promise<Outcome<PublishableChange>> {
    return this.#run(async () => {
      await this.#authorize(call, 'work')
      return (await this.#openPublisher()).describe()
    })
  }

  /** Pushes the changes of the workspace as a commit on a new branch, and opens a pull request if that is wanted. */
  publish(call: SandboxCall, publication: ConversationPublication): Promise<Outcome<Published>> {
    return this.#run(async () => {
      await this.#authorize(call, 'work')
      const publisher = await this.#openPublisher()
      await auditAgentCall(this.env, this.#record, call, Date.now())
      const published = await publisher.publish(publication)
      this.#report()
      return published
    })
  }

  /** Messages that the operator's API refused for a day. */
  deadLetters(call: SandboxCall): Promise<Outcome<readonly { key: string; attempts: number }[]>> {
    return this.#run(async () => {
      await this.#authorize(call, 'own')
      return this.#store.outbox.deadLetters().map(({ key, attempts }) => ({ key, attempts }))
    })
  }

  replayDeadLetters(call: SandboxCall): Promise<Outcome<number>> {
    return this.#run(async () => {
      await this.#authorize(call, 'own')
      await auditAgentCall(this.env, this.#record, call, Date.now())
      const count = this.#store.outbox.replayDeadLetters(Date.now())
      this.ctx.waitUntil(this.#sender.deliver())
      return count
    })
  }

  /** Ends the agent and deletes everything; a sandbox that was made for the conversation is destroyed. */
  remove(call: SandboxCall): Promise<Outcome<void>> {
    return this.#run(async () => {
      await this.#authorize(call, 'own')
      await auditAgentCall(this.env, this.#record, call, Date.now())
      await this.#delete()
    })
  }

  /** Deletes the conversation of a deleted account. */
  deleteOrphaned(): Promise<Outcome<void>> {
    return this.#run(() => (this.#store.read() === undefined ? undefined : this.#delete()))
  }

  /** Throws `not_found` unless there is a conversation. */
  check(): Promise<Outcome<void>> {
    return this.#run(() => void this.#record)
  }

  /** Tells browsers that files of the sandbox are saved or restored. */
  async sandboxStatus(status: string): Promise<void> {
    if (this.#store.read() !== undefined) this.#broadcast({ type: 'session_status', status })
  }

  /** Accepts the socket of a browser. */
  override async fetch(request: Request): Promise<Response> {
    const call = parseConversationCall(request.headers)
    const outcome = await this.#run(() => this.#open(call))
    if (outcome.ok) return outcome.value
    const error = errorOf(outcome)
    return respondError(error, call.requestId, { [CODE_HEADER]: error.code })
  }

  override async webSocketMessage(socket: WebSocket, data: string | ArrayBuffer): Promise<void> {
    if (!this.#sockets.admits(socket, data)) return
    await this.#frames.run('frames', async () => {
      const caller = await this.#sockets.callerOf(socket)
      if (caller === undefined || this.#store.read() === undefined) return
      const outcome = await this.#run(() => this.#received(caller, data))
      if (outcome.ok) return
      this.#sockets.refuse(caller.socket, outcome, data)
    })
    await this.#sockets.drained
  }

  override webSocketError(socket: WebSocket): void {
    this.#sockets.closed(socket)
  }

  override webSocketClose(socket: WebSocket, code: number): void {
    this.#sockets.closed(socket)
    // Completes the handshake; reserved codes cannot be sent.
    socket.close(code >= 1000 && code < 5000 && ![1005, 1006, 1015].includes(code) ? code : CLOSE_GOING_AWAY)
  }

  override async alarm(): Promise<void> {
    const record = this.#store.read()
    if (record === undefined) return
    const { config } = runtimeOf(this.env)
    const isNew = this.#conversation.activity === 'new'
    const keepMs = isNew ? DAY_MS : config.conversations.keepDays * DAY_MS
    if (Date.now() >= record.usedMs + keepMs && this.#sockets.count === 0) {
      unwrap(await this.#run(() => this.#delete()))
      return
    }
    // First, so that a crash only delays it.
    await this.#alarm.setBy(Date.now() + WATCH_MS)
    unwrap(
      await this.#run(async () => {
        this.#take({ type: 'tick' })
        if (this.#conversation.wantsSocket && (await hasLostAccess(this.env, record)))
          this.#take({ type: 'frame', frame: { type: 'close' }, sender: CONTROL, newId: '' })
        await this.#sender.deliver()
        await this.#advance()
      }),
    )
    await this.#rearm()
  }

  async #open(call: ReturnType<typeof parseConversationCall>): Promise<Response> {
    const { after, maySteer: mayUse, ...caller } = call
    await this.#authorize(caller, 'watch')
    const maySteer = mayUse && (await mayCallerSteer(this.env, this.#record, caller))
    this.#sockets.checkRoom(caller.identity)
    await auditAgentCall(this.env, this.#record, caller, Date.now())
    const { login } = caller
    const account = this.env.ACCOUNT.get(this.env.ACCOUNT.idFromName(caller.identity))
    const hasStoredSignIn = login !== undefined && unwrap(await account.hasSignIn(login))
    const { 0: client, 1: server } = new WebSocketPair()
    const { action: _action, ...unaudited } = caller
    this.#sockets.accept(server, { call: unaudited, maySteer, hasStoredSignIn })
    this.#sockets.replay(server, after, {
      record: this.#record,
      store: this.#store,
      state: this.#conversation,
    })
    this.#resumeAgent()
    return new Response(null, { status: 101, webSocket: client })
  }

  async #received(caller: SocketAttachment, data: string | ArrayBuffer): Promise<void> {
    const frame = typeof data === 'string' ? decodeClientFrame(data) : undefined
    if (frame === undefined) throw new SandwireError('bad_request', 'Cannot use the frame: it is malformed')
    if (!caller.maySteer) throw new SandwireError('forbidden', 'Cannot do this: you may only watch')
    if (frame.type === 'message' || frame.type === 'start') await this.#admitMessage()
    const { socket, call } = caller
    const audited = { ...call, action: 'conversation.steer', requestId: crypto.randomUUID() } as const
    await auditAgentCall(this.env, this.#record, audited, Date.now())
    const sender = { socket, account: call.identity, name: call.name }
    this.#take({ type: 'frame', frame, sender, newId: crypto.randomUUID() })
  }

  /** Throws `ceiling_exceeded` when the owner's account has no room for what the conversation stores. */
  async #admitMessage(): Promise<void> {
    const { id, owner } = this.#record
    const account = this.env.ACCOUNT.get(this.env.ACCOUNT.idFromName(owner))
    unwrap(await account.admitConversation(id, this.#store.keptChars))
  }

  /** Applies an input to the state, stores and sends its effects, and starts the work that follows. */
  #take(input: ConversationInput) {
    const state = this.#conversation
    const before = state.activity
    const effects = state.on(input, Date.now())
    const texts: string[] = []
    // All in one turn of the event loop, so it is stored atomically; the platform sends nothing before it is stored.
    for (const effect of effects) {
      switch (effect.kind) {
        case 'append':
          this.#store.addEntry(effect.entry)
          texts.push(formatEntry(effect.entry))
          break
        case 'broadcast':
          texts.push(JSON.stringify(effect.frame))
          break
        case 'persist':
          this.#sender.add(effect.key, effect.message)
          break
        case 'send':
          this.#sockets.send(effect.socket, effect.frame)
      }
    }
    this.#store.writeState(state.snapshot)
    this.#sockets.broadcast(texts)
    if (effects.some(({ kind }) => kind === 'persist')) this.#store.touch(Date.now())
    if (state.activity !== before) this.#report()
    this.#closeRestingSocket()
    this.#advanceSoon()
    return effects
  }

  /** Closes the socket to the sandbox when the agent rests, so that the object can be evicted. */
  #closeRestingSocket(): void {
    const { program } = this.#conversation.snapshot
    if (this.#agentSocket === undefined) return
    if (program.kind === 'working' && program.run === this.#agentSocket.run) return
    this.#agentSocket.close()
    this.#agentSocket = undefined
  }

  #advanceSoon(): void {
    this.#mustAdvance = true
    if (this.#isAdvancing) return
    this.ctx.waitUntil(
      this.#run(async () => {
        await Promise.all([this.#advance(), this.#sender.deliver()])
        await this.#rearm()
      }),
    )
  }

  /** After an eviction, the first thing that wakes the object also connects to a working agent. */
  #resumeAgent(): void {
    if (this.#conversation.work(Date.now()) !== undefined) this.#advanceSoon()
  }

  /** Performs one step of work after the other until none is due. */
  async #advance(): Promise<void> {
    if (this.#isAdvancing) return
    this.#isAdvancing = true
    try {
      while (this.#mustAdvance || this.#conversation.work(Date.now()) !== undefined) {
        this.#mustAdvance = false
        const work = this.#conversation.work(Date.now())
        if (work === undefined) continue
        await this.#alarm.setBy(Date.now() + WATCH_MS)
        this.#take(await this.#perform(work))
      }
    } finally {
      this.#isAdvancing = false
    }
  }

  async #perform(work: Work): Promise<ConversationInput> {
    const { log } = runtimeOf(this.env)
    try {
      const agent = await this.#openWork()
      if (work.kind !== 'connect') return await agent.perform(work)
      const { run } = work
      this.#agentSocket?.close()
      const socket = await agent.connect(run, work.after)
      this.#agentSocket = new EventSocket(run, socket, {
        messages: (messages) => this.#onAgent(run, messages),
        closed: () => this.#onAgentClosed(run),
      })
      return { type: 'opened', run }
    } catch (caught) {
      const failure = failureOf(caught)
      log.warn('conversation_step_failed', { session: this.#record.id, state: work.kind, code: failure.code })
      return { type: 'failed', work, failure }
    }
  }

  #onAgent(run: string, messages: readonly AgentMessage[]): void {
    if (this.#store.read() === undefined) return
    const { resume } = this.#conversation.snapshot
    for (const each of groupEvents(messages))
      if ('events' in each) this.#take({ type: 'events', run, events: each.events })
      else this.#broadcast({ type: 'sdk_message', message: toStreamEvent(each.partial, resume) })
  }

  #onAgentClosed(run: string): void {
    if (this.#agentSocket?.run !== run || this.#store.read() === undefined) return
    this.#agentSocket = undefined
    this.#take({ type: 'lost', run })
  }

  #broadcast(frame: LiveFrame): void {
    this.#sockets.broadcast([JSON.stringify(frame)])
  }

  /** Sets the alarm for what is due next: retries, deadlines, messages for the API, and finally the end of the conversation. */
  async #rearm(): Promise<void> {
    const record = this.#store.read()
    if (record === undefined) return
    const { config } = runtimeOf(this.env)
    const nowMs = Date.now()
    const times = [
      record.usedMs + config.conversations.keepDays * DAY_MS,
      this.#conversation.wakeMs,
      this.#sender.nextMs(),
      ...(this.#conversation.wantsSocket ? [nowMs + WATCH_MS] : []),
    ].filter((time) => time !== undefined)
    await this.#alarm.setAt(Math.max(nowMs + MIN_PAUSE_MS, Math.min(...times)))
  }

  #report(): void {
    const { log } = runtimeOf(this.env)
    // The list is only a copy; the next change repeats it.
    this.ctx.waitUntil(
      reportConversation(this.env, this.#store, () => this.#view()).catch((cause: unknown) =>
        log.warn('conversation_not_reported', { cause: String(cause) }),
      ),
    )
  }

  async #delete(): Promise<void> {
    const { id, owner } = this.#record
    const work = await this.#openWork()
    const { program, ended } = this.#conversation.snapshot
    this.#agentSocket?.close()
    this.#agentSocket = undefined
    await work.release('run' in program ? [program.run, ...ended] : ended)
    unwrap(await this.env.ACCOUNT.get(this.env.ACCOUNT.idFromName(owner)).removeConversation(id))
    this.#sockets.closeAll(CLOSE_GOING_AWAY, 'deleted')
    await this.ctx.storage.deleteAlarm()
    await this.ctx.storage.deleteAll()
    this.#store.forget()
    this.#state = undefined
  }

  #view(): ConversationView {
    return viewOf(this.#record, this.#conversation)
  }

  get #record(): ConversationRecord {
    const record = this.#store.read()
    if (record === undefined) throw noSuchConversation()
    return record
  }

  /** The state; read once per life of the object. */
  get #conversation(): ConversationState {
    if (this.#state !== undefined) return this.#state
    const { id } = this.#record
    const state = new ConversationState(id, this.#store.readState() ?? NEW_CONVERSATION)
    // No socket of an earlier life is open.
    state.on({ type: 'restarted' }, Date.now())
    this.#state = state
    return state
  }

  #authorize(call: SandboxCall, need: AgentNeed): Promise<void> {
    return authorizeConversation(this.env, this.#record, call, need)
  }

  async #openPublisher(): Promise<ConversationPublisher> {
    const { activity } = this.#conversation
    return new ConversationPublisher(this.env, { store: this.#store, work: await this.#openWork(), activity })
  }

  #openWork(): Promise<AgentWork> {
    this.#work ??= openAgentWork(this.env, this.#store)
    return this.#work
  }

  #run<T>(run: () => T | Promise<T>): Promise<Outcome<T>> {
    const { log } = runtimeOf(this.env)
    return settle(run, (cause) => log.error('conversation_error', { cause: String(cause) }))
  }
}
