import { MAX_AGENT_TERMINALS } from '@sandwire/agent'
import { SandwireError } from '@sandwire/protocol'
import type { Caller } from '../../caller.ts'
import type { RemoteScreen } from '../../screen/screen-renderer.ts'
import type { SessionRegistry } from '../../sessions/session-registry.ts'
import { AgentTerminal } from './agent-terminal.ts'

/** Time that a terminal stays for people after the agent has left it. */
const KEEP_SECONDS = 600
/** Terminals that one run opens in its life; each is an entry in lists and logs. */
const MAX_OPENED = 1_000

export interface AgentTerminalsDependencies {
  readonly registry: Pick<SessionRegistry, 'create' | 'mintConnection'>
  readonly openScreen: (cols: number, rows: number) => RemoteScreen
  readonly now: () => number
  readonly randomHex: (bytes: number) => string
}

export interface OpenTerminal {
  readonly command: string | undefined
  readonly args: readonly string[]
  readonly cwd: string | undefined
  readonly cols: number
  readonly rows: number
}

/** The terminals that one run of a coding agent has opened. It has access to no others. */
export class AgentTerminals {
  readonly #run: string
  readonly #name: string
  readonly #deps: AgentTerminalsDependencies
  readonly #terminals = new Map<string, AgentTerminal>()
  #opened = 0
  #isOver = false

  /** `name` is what people see of the agent. */
  constructor(run: string, name: string, deps: AgentTerminalsDependencies) {
    this.#run = run
    this.#name = name
    this.#deps = deps
  }

  all(): ReadonlyMap<string, AgentTerminal> {
    return this.#terminals
  }

  /** Throws `bad_request` for an unknown one. */
  find(id: string): AgentTerminal {
    const terminal = this.#terminals.get(id)
    if (terminal !== undefined) return terminal
    const open = [...this.#terminals.keys()].join(', ')
    throw new SandwireError(
      'bad_request',
      `You have no terminal ${JSON.stringify(id)}${open === '' ? '' : `; open are ${open}`}`,
    )
  }

  /** Throws when too many are open, and what the sandbox refuses. */
  async open({ command, args, cwd, cols, rows }: OpenTerminal): Promise<string> {
    const { registry, openScreen, now, randomHex } = this.#deps
    // Made room for before the next call can be made.
    if (this.#terminals.size >= MAX_AGENT_TERMINALS) await this.#forgetEnded()
    if (this.#isOver) throw new SandwireError('shutting_down', 'The run is ending')
    if (this.#terminals.size >= MAX_AGENT_TERMINALS)
      throw new SandwireError(
        'too_many_sessions',
        `${MAX_AGENT_TERMINALS} terminals are open: close one with terminal_close`,
      )
    if (this.#opened >= MAX_OPENED)
      throw new SandwireError('too_many_sessions', `This run has opened ${MAX_OPENED} terminals`)
    const requestId = randomHex(8)
    const { runner } = registry.create({
      caller: callerOf(this.#run, this.#name, requestId),
      requestId,
      createId: undefined,
      create: {
        argv: command === undefined ? [] : [command, ...args],
        pane: undefined,
        mode: 'pty',
        cwd,
        keepSeconds: KEEP_SECONDS,
        lifetimeSeconds: undefined,
        idleSeconds: undefined,
        overflow: 'trim',
        isPinned: false,
      },
    })
    this.#opened += 1
    const id = `t${this.#opened}`
    const terminal = new AgentTerminal({
      runner,
      connection: registry.mintConnection(),
      requestId,
      identity: randomHex(16),
      principal: principalOf(this.#run),
      name: this.#name,
      size: { cols, rows },
      openScreen,
      now,
    })
    this.#terminals.set(id, terminal)
    return id
  }

  async close(id: string): Promise<void> {
    const terminal = this.find(id)
    this.#terminals.delete(id)
    await terminal.close()
  }

  /** Ends all terminals but those that people drive. Resolves when no process of them is left. */
  async end(): Promise<void> {
    this.#isOver = true
    const terminals = [...this.#terminals.values()]
    this.#terminals.clear()
    await Promise.all(terminals.map((terminal) => terminal.close()))
  }

  async #forgetEnded(): Promise<void> {
    const ended = [...this.#terminals].filter(([, { hasEnded }]) => hasEnded)
    for (const [id] of ended) this.#terminals.delete(id)
    await Promise.all(ended.map(([, terminal]) => terminal.close()))
  }
}

/** Account of the attachments and create ids of a run. It cannot be one of control's, which have no colon before an issuer. */
function principalOf(run: string): string {
  return `agent:${run}`
}

function callerOf(run: string, name: string, requestId: string): Caller {
  return {
    identity: principalOf(run),
    name,
    authority: 'driver',
    exec: true,
    session: undefined,
    agentRun: run,
    requestId,
  }
}
