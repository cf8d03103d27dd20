import type {
  AgentState,
  AgentView,
  EndStatus,
  NumberedEvent,
  RunEvent,
  RunResult,
  WorkspaceChange,
} from '@sandwire/agent'
import { factsOf, type FakeServer, UPGRADED } from './fake-sandboxes.ts'

const USAGE = {
  turns: 1,
  inputTokens: 10,
  outputTokens: 5,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  costUsd: 0.01,
}

/** A run in a fake sandbox, which the test moves on. */
export class FakeAgent {
  readonly journal = crypto.randomUUID()
  readonly events: NumberedEvent[] = []
  readonly messages: { readonly id: string; readonly text: string; readonly by: string }[] = []
  readonly start: Readonly<Record<string, unknown>>
  readonly run: string
  state: AgentState = 'turn'
  reason: EndStatus | null = null
  message: string | null = null
  /** Conversation of the program, as its result has it. */
  agentSessionId: string | null = null
  diff = ''
  /** Changed files that the diff leaves out. */
  readonly withheld: string[] = []
  structured: unknown = null
  /** The changes as a pack, and the commit and tree before and after them. */
  pack:
    | { readonly bytes: Uint8Array<ArrayBuffer>; readonly commit: string; readonly tree: string }
    | undefined
  answered: { readonly decision: string; readonly by: string; readonly answers?: unknown } | undefined
  /** Sockets of its events. */
  readonly viewers = new Set<(text: string) => void>()
  /** Whether `stop` ends it at once. */
  obeysStop = true

  constructor(run: string, start: Readonly<Record<string, unknown>>) {
    this.run = run
    this.start = start
    this.emit({ type: 'status', status: 'state', state: 'turn' })
  }

  emit(event: RunEvent): void {
    const entry = { seq: this.events.length + 1, atMs: Date.now(), event }
    this.events.push(entry)
    for (const send of this.viewers) send(JSON.stringify(entry))
  }

  enter(state: AgentState): void {
    this.state = state
    this.emit({ type: 'status', status: 'state', state })
  }

  /** The program has begun a conversation of its own. */
  begin(agentSessionId: string): void {
    this.emit({ type: 'status', status: 'session', agentSessionId, model: 'claude-test', version: '1' })
    this.enter('turn')
  }

  /** The turn has ended. */
  rest(): void {
    this.enter('idle')
    this.emit({
      type: 'awaiting_input',
      prompt: 'The agent waits for a message.',
      requestId: `turn-${this.events.length}`,
      kind: 'message',
      deadlineMs: null,
    })
  }

  /** Ends the run with a diff. */
  end(status: EndStatus = 'completed', diff = 'diff --git a/a b/a\n'): void {
    this.state = 'ended'
    this.reason = status
    this.diff = diff
    this.emit({
      type: 'result',
      diff,
      isDiffOmitted: false,
      summary: 'Done',
      filesChanged: ['a'],
      status,
      treeHash: 'f'.repeat(40),
    })
    this.emit({ type: 'complete', exitCode: 0, signal: null })
  }

  /** Asks for a permission, or questions. */
  ask(requestId: string, ...questions: readonly string[]): void {
    this.state = 'awaiting'
    this.emit({
      type: 'awaiting_input',
      prompt: questions[0] ?? 'Run ls?',
      requestId,
      kind: questions.length === 0 ? 'permission' : 'question',
      deadlineMs: Date.now() + 60_000,
      ...(questions.length === 0
        ? {}
        : {
            questions: questions.map((question) => ({
              question,
              header: '',
              allowsMany: false,
              options: [],
            })),
          }),
    })
  }

  get view(): AgentView {
    return {
      run: this.run,
      journal: this.journal,
      state: this.state,
      lastSeq: this.events.length,
      startedMs: 1,
      endedMs: this.state === 'ended' ? 2 : null,
      reason: this.reason,
      message: this.message,
      agentSessionId: null,
      model: 'claude-test',
      usage: USAGE,
      approvals: this.state === 'awaiting' ? this.#pending : [],
      isTamperProof: true,
    }
  }

  get result(): RunResult {
    return {
      status: this.reason ?? 'failed',
      message: this.message,
      summary: 'Done',
      structured: this.structured,
      exitCode: 0,
      signal: null,
      base: {
        treeHash: 'e'.repeat(40),
        commit: this.pack?.commit ?? null,
        isCommit: this.pack !== undefined,
      },
      diff: {
        bytes: this.diff.length,
        sha256: '',
        packBytes: this.pack?.bytes.length ?? null,
        treeHash: this.pack?.tree ?? 'f'.repeat(40),
        files: [{ path: 'a', action: 'modify', added: 1, removed: 0 }],
        ignored: [],
        submodules: [],
        withheld: this.withheld,
        unreadable: [],
      },
      diffProblem: null,
      usage: USAGE,
      agentSessionId: this.agentSessionId,
      model: 'claude-test',
      isTamperProof: true,
      startedMs: 1,
      endedMs: 2,
    }
  }

  get #pending(): AgentView['approvals'] {
    const [last] = this.events.map(({ event }) => event).filter((event) => event.type === 'awaiting_input')
    if (last === undefined) return []
    const { type: _type, ...request } = last
    return [request]
  }
}

function refuse(status: number, code: string): Response {
  return Response.json({ error: { code, message: code } }, { status })
}

/** The agent routes of sandboxd, for `FakeSandboxes.intercept`. */
export class FakeAgents {
  readonly runs = new Map<string, FakeAgent>()
  /** Called with each new agent. */
  onStart: (agent: FakeAgent) => void = () => undefined
  starts = 0
  /** Arguments of clones, and their exit code. */
  readonly clones: string[][] = []
  cloneCode = 0
  /** What the sandbox says of its workspace; undefined: there is no repository. */
  change: { readonly remote: string; readonly branch?: string; readonly pack: FakeAgent['pack'] } | undefined

  /** The branches with which work began, of requests for the change. */
  readonly changeRefs: (string | null)[] = []

  readonly handle = async (
    request: Request,
    server?: FakeServer,
  ): Promise<Response | typeof UPGRADED | undefined> => {
    const url = new URL(request.url)
    const [, kind, id = '', verb = ''] = url.pathname.split('/')
    if (kind === 'sessions') return this.#clone(request, id)
    if (kind !== 'agents') return undefined
    if (id === 'change') {
      this.changeRefs.push(url.searchParams.get('ref'))
      return this.#change()
    }
    const body = request.method === 'GET' ? {} : ((await request.json().catch(() => ({}))) as Body)
    if (request.method === 'PUT' && !this.runs.has(id)) {
      const agent = new FakeAgent(id, body)
      this.starts += 1
      this.runs.set(id, agent)
      this.onStart(agent)
    }
    const agent = this.runs.get(id)
    if (agent === undefined) return refuse(404, 'not_found')
    if (request.method === 'DELETE') {
      if (agent.state !== 'ended') return refuse(409, 'conflict')
      this.runs.delete(id)
      return new Response(null, { status: 204 })
    }
    if (verb === 'events' && request.headers.has('upgrade')) return follow(agent, request, url, server)
    if (verb === 'claude-stream') {
      const isOver = agent.state === 'ended' && url.searchParams.get('join') === '1'
      return isOver ? refuse(409, 'run_ended') : greet(request, url, server)
    }
    return this.#respond(agent, verb, request, url, body)
  }

  #change(): Response {
    if (this.change === undefined) return refuse(409, 'conflict')
    const { remote, branch = null, pack } = this.change
    const file = { path: 'made.txt', action: 'create', added: 1, removed: 0 } as const
    const change: WorkspaceChange = {
      remote,
      branch,
      parent: pack?.commit ?? 'e'.repeat(40),
      diff: {
        bytes: 1,
        sha256: '',
        packBytes: pack?.bytes.length ?? null,
        treeHash: pack?.tree ?? 'f'.repeat(40),
        files: pack === undefined ? [] : [file],
        ignored: [],
        submodules: [],
        withheld: [],
        unreadable: [],
      },
    }
    return new Response(new Blob([`${JSON.stringify(change)}\n`, pack?.bytes ?? '']))
  }

  /** A clone, which is a session that ends at once. */
  async #clone(request: Request, id: string): Promise<Response> {
    if (id === '') this.clones.push(((await request.json()) as { args: string[] }).args)
    const exit = { code: this.cloneCode, signal: null, truncated: false }
    if (request.url.includes('/output'))
      return new Response('fatal: repository not found', {
        headers: { 'sandwire-from': '0', 'sandwire-next': '26', 'sandwire-end': '26' },
      })
    return Response.json({ ...Object(factsOf(id === '' ? sessionOf(request) : id)), state: 'exited', exit })
  }

  #respond(agent: FakeAgent, verb: string, request: Request, url: URL, body: Body): Response {
    switch (verb) {
      case 'events':
        return streamOf(agent, Number(url.searchParams.get('after') ?? 0), request.headers)
      case 'messages':
        if (agent.state === 'ended') return refuse(409, 'conflict')
        if (!agent.messages.some(({ id }) => id === body['id']))
          agent.messages.push({
            id: String(body['id']),
            text: String(body['text']),
            by: String(body['by']),
          })
        if (agent.state === 'idle') agent.enter('turn')
        return Response.json({ id: body['id'], receipt: 'queued' })
      case 'approvals': {
        if (agent.answered !== undefined) return refuse(409, 'conflict')
        const { answers } = body
        agent.answered = {
          decision: String(body['decision']),
          by: String(body['by']),
          ...(answers === undefined ? {} : { answers }),
        }
        agent.state = 'turn'
        const { requestId, decision, by } = body
        return Response.json({ requestId, state: 'answered', decision, by })
      }
      case 'interrupt':
        agent.state = 'idle'
        return Response.json(agent.view)
      case 'stop':
        if (agent.state !== 'ended' && agent.obeysStop) {
          agent.message = String(body['message'])
          agent.end(body['reason'] as EndStatus)
        }
        return Response.json(agent.view)
      case 'result':
        return agent.state === 'ended' ? Response.json(agent.result) : refuse(409, 'conflict')
      case 'diff':
        return agent.state === 'ended' ? new Response(agent.diff) : refuse(409, 'conflict')
      case 'pack':
        return agent.pack === undefined ? refuse(404, 'not_found') : new Response(agent.pack.bytes)
      default:
        return Response.json(agent.view)
    }
  }
}

/** Sends the query of a session of `/ws/claude-stream` as its first message. */
function greet(request: Request, url: URL, server?: FakeServer): typeof UPGRADED {
  const message = {
    type: 'connected',
    run: url.pathname.split('/')[2],
    ...Object.fromEntries(url.searchParams),
  }
  server?.upgrade(request, {
    data: { session: '', opened: (socket) => void socket.send(JSON.stringify(message)) },
    headers: { 'sec-websocket-protocol': '' },
  })
  return UPGRADED
}

/** Sends events through a socket. */
function follow(agent: FakeAgent, request: Request, url: URL, server?: FakeServer): typeof UPGRADED {
  const after = Number(url.searchParams.get('after') ?? 0)
  let send: ((text: string) => void) | undefined
  const opened = (socket: { send(text: string): unknown; close(code?: number): void }): void => {
    for (const entry of agent.events) if (entry.seq > after) socket.send(JSON.stringify(entry))
    send = (text) => void socket.send(text)
    agent.viewers.add(send)
  }
  const closed = (): void => void (send !== undefined && agent.viewers.delete(send))
  server?.upgrade(request, {
    data: { session: '', opened, closed },
    headers: { 'sec-websocket-protocol': '' },
  })
  return UPGRADED
}

type Body = Readonly<Record<string, unknown>>

/** The id of the session that a request starts, from its token. */
function sessionOf(request: Request): string {
  const [, claims = ''] = (request.headers.get('authorization') ?? '').split('.')
  return (JSON.parse(atob(claims.replaceAll('-', '+').replaceAll('_', '/'))) as { session: string }).session
}

function streamOf(agent: FakeAgent, after: number, headers: Headers): Response {
  const events = agent.events.filter(({ seq }) => seq > after)
  if ((headers.get('accept') ?? '').includes('event-stream')) {
    const text = events
      .map((each) => `id: ${each.seq}\nevent: ${each.event.type}\ndata: ${JSON.stringify(each)}\n\n`)
      .join('')
    return new Response(text, { headers: { 'content-type': 'text/event-stream' } })
  }
  const { journal, state } = agent
  return Response.json({ journal, state, events, lastSeq: agent.events.length })
}
