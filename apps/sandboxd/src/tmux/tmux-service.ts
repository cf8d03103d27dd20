import { raceTimeout } from '@sandwire/async'
import { SandwireError } from '@sandwire/protocol'
import { lstatSync, readFileSync } from 'node:fs'
import type { ProcessSpec, StartProcess } from '../processes/process.ts'
import type { AsUser } from '../processes/run-as.ts'
import { commandOf, type TmuxAction } from './actions.ts'
import {
  ControlClient,
  formatArgument,
  type Replies,
  TmuxCommandError,
  TmuxGoneError,
} from './control-client.ts'
import type { ControlMessage } from './control-parser.ts'
import { parseLayout, type LayoutCell } from './layout.ts'
import { OpenPane } from './open-pane.ts'
import { PaneProcess } from './pane-process.ts'
import { renderSnapshot, snapshotCommands } from './pane-snapshot.ts'
import { findPane, readState, STATE_COMMANDS, type TmuxState, type TmuxView } from './view.ts'

/** The session that is created where none exists. */
const SESSION_NAME = 'main'
/** `ignore-size`: the client has no say in sizes until a page or a pane's session asks for one. tmux would end a client that is 300 s behind. */
const CLIENT_FLAGS = 'ignore-size,pause-after=300'
/** A server that does not answer is treated as gone. */
const OPEN_MS = 10_000
/** Bytes of input per command: tmux parses a command as a whole. */
const TYPED_BYTES = 512
/** Of input that `typeInto` takes before tmux has taken it. */
const MAX_TYPED_BYTES = 1024 * 1024
/** Changes within this time are one event. */
const REFRESH_MS = 20
/** How often a socket is looked for while someone watches and no server runs. */
const SERVER_POLL_MS = 1_000
/** Until the client is started again when it ended, such as by `detach-client -a` of a user. */
const REATTACH_MS = 200

const TMUX_MISSING = new SandwireError(
  'command_not_found',
  'Cannot use tmux: it is not installed in the sandbox. Install it there, or on the machine that runs the sandboxes: apt-get install tmux',
)

export interface TmuxDependencies {
  readonly startProcess: StartProcess
  /** Of the user whose server it is. */
  readonly uid: number
  /** Monotonic milliseconds. */
  readonly now: () => number
  readonly asUser: AsUser
  readonly cwd: string
  readonly baseEnv: Readonly<Record<string, string>>
}

type Client = { readonly control: ControlClient; state: TmuxState }

type NewWindow = Extract<TmuxAction, { type: 'new_window' }>

/** Called with every change. */
type Listener = (view: TmuxView) => void

/** The sandbox's tmux server: its windows, and its panes as processes. One control client serves all users. */
export class TmuxService {
  readonly #deps: TmuxDependencies
  readonly #panes = new Map<string, OpenPane>()
  readonly #listeners = new Set<Listener>()
  #client: Client | undefined
  #opening: Promise<Client | 'missing' | 'stopped'> | undefined
  #refresh: ReturnType<typeof setTimeout> | undefined
  /** Runs while there are listeners and no client. */
  #poll: ReturnType<typeof setInterval> | undefined
  /** The socket of the last attempt to attach: without another one there is no new server. */
  #triedSocket: string | undefined
  /** The last command that set a size of a window; undefined when none did since `#releaseSizes`. */
  #lastSize: string | undefined
  #lastView = ''
  #lastOutputMs: number | null = null
  /** Input for panes without a session's input window that tmux has not taken. */
  #typedBytes = 0

  constructor(deps: TmuxDependencies) {
    this.#deps = deps
  }

  async view(): Promise<TmuxView> {
    const client = await this.#open()
    return typeof client === 'string' ? { state: client } : viewOf(client.state)
  }

  /** Runs an action, and starts the server where a window is to be made. Returns the pane that was made. */
  async act(action: TmuxAction): Promise<{ readonly pane?: string; readonly view: TmuxView }> {
    let client = await this.#open()
    const wasStopped = client === 'stopped'
    if (wasStopped && action.type === 'new_window') client = await this.#open(action)
    if (client === 'missing') throw TMUX_MISSING
    if (client === 'stopped')
      throw new SandwireError('conflict', 'Cannot do that: no tmux server runs in the sandbox')
    try {
      // The first window comes with the server.
      const [lines = []] = wasStopped ? [] : await this.#run(client, action)
      await this.#reload(client)
      const made = lines[0] === undefined ? '' : new TextDecoder().decode(lines[0])
      const pane = wasStopped ? [...client.state.panes.keys()][0] : made === '' ? undefined : made
      return { ...(pane === undefined ? {} : { pane }), view: viewOf(client.state) }
    } catch (error) {
      if (error instanceof TmuxGoneError) return { view: { state: 'stopped' } }
      if (error instanceof TmuxCommandError)
        throw new SandwireError('bad_request', `Cannot do that: tmux says "${error.message}"`)
      throw error
    }
  }

  async #run(client: Client, action: TmuxAction): Promise<Replies> {
    if (action.type !== 'resize_window') return client.control.run(commandOf(action))
    return client.control.run(...this.#sizeCommands(action.window, action.cols, action.rows))
  }

  /** Commands that make a window that large, until another client of tmux is used or `#releaseSizes`. */
  #sizeCommands(window: string, cols: number, rows: number): readonly string[] {
    this.#lastSize = `refresh-client -C ${window}:${cols}x${rows}`
    return [
      `refresh-client -f '!ignore-size'`,
      this.#lastSize,
      // The client used last decides. A control client counts as used when it selects a window. tmux checks which one is
      // selected, because another may have been selected since the state was read.
      `if-shell -F '#{==:#{window_id},${window}}' 'select-window -t ${window}'`,
    ]
  }

  /** Without viewers, sizes are those of other clients, if there are any. */
  #releaseSizes(): void {
    if (this.#listeners.size > 0 || this.#lastSize === undefined) return
    // The second command makes tmux calculate sizes.
    void this.#client?.control.run('refresh-client -f ignore-size', this.#lastSize).catch(() => undefined)
    this.#lastSize = undefined
  }

  /** Calls back with the current view and with every later one. */
  async watch(listener: Listener): Promise<() => void> {
    listener(await this.view())
    this.#listeners.add(listener)
    this.#pollForServer()
    return () => {
      this.#listeners.delete(listener)
      this.#pollForServer()
      this.#releaseSizes()
    }
  }

  /** When a pane last wrote something, shown or not. Attaches to a server that a user has started meanwhile. */
  lastOutputMs(): number | null {
    void this.#attachToNew().catch(() => undefined)
    return this.#lastOutputMs
  }

  /** The current size of a pane; undefined when there is no such pane. */
  sizeOf(pane: string): { readonly cols: number; readonly rows: number } | undefined {
    return this.#client?.state.panes.get(pane)
  }

  /** Starts a process that is the pane. */
  startPane(pane: string): StartProcess {
    return (_, events) => {
      const client = this.#client
      const known = client?.state.panes.get(pane)
      if (client === undefined || known === undefined)
        return { failure: 'not_found', message: `Cannot open the pane: tmux has no pane ${pane}` }
      const open = this.#panes.get(pane) ?? new OpenPane(this.#deps.asUser)
      this.#panes.set(pane, open)
      open.follow(known)
      const process = new PaneProcess(
        {
          pid: known.pid,
          type: (bytes) => this.#type(this.#client, pane, bytes),
          resize: (cols, rows) => this.#resize(this.#client, pane, cols, rows),
          kill: (signal) => this.#kill(this.#client, pane, signal),
          setPaused: (isPaused) => open.setPaused(process, isPaused),
          closed: () => {
            open.remove(process)
            if (open.isUnused && this.#panes.get(pane) === open) this.#panes.delete(pane)
            if (this.#panes.size === 0) this.#releaseSizes()
          },
        },
        events,
      )
      open.add(process)
      this.#draw(client.control, pane, process)
      return process
    }
  }

  /** Types into another pane: `%3`, a title, or `left`, `right`, `up` or `down` of `from`. False when there is none. */
  async typeInto(from: string, target: string, bytes: Uint8Array): Promise<boolean> {
    const client = this.#client
    const pane = client && findPane(client.state, from, target)
    if (client === undefined || pane === undefined || this.#typedBytes > MAX_TYPED_BYTES) return false
    this.#typedBytes += bytes.byteLength
    try {
      await this.#type(client, pane, bytes)
      return true
    } catch {
      return false
    } finally {
      this.#typedBytes -= bytes.byteLength
    }
  }

  #draw(control: ControlClient, pane: string, process: PaneProcess): void {
    control.runThen(
      snapshotCommands(pane),
      (replies) => {
        const snapshot = renderSnapshot(replies)
        if (snapshot === undefined) return process.end({ code: null, signal: 'SIGHUP' })
        process.sized(snapshot.cols, snapshot.rows)
        return process.draw(snapshot.bytes)
      },
      () => process.end({ code: null, signal: 'SIGHUP' }),
    )
  }

  /** The server signals, because it has no more rights than the pane's programs. */
  #kill(client: Client | undefined, pane: string, signal: number): void {
    const known = client?.state.panes.get(pane)
    const group = known && foregroundGroupOf(known.pid)
    if (group !== undefined)
      void client?.control.run(`run-shell -b 'kill -${signal} -- -${group}'`).catch(() => undefined)
  }

  async #type(client: Client | undefined, pane: string, bytes: Uint8Array): Promise<void> {
    if (client === undefined) throw new TmuxGoneError()
    const runs: Promise<unknown>[] = []
    for (let at = 0; at < bytes.byteLength; at += TYPED_BYTES) {
      const hex = Buffer.from(bytes.subarray(at, at + TYPED_BYTES)).toString('hex')
      runs.push(client.control.run(`send-keys -t ${pane} -H ${hex.replaceAll(/..(?!$)/g, '$& ')}`))
    }
    await Promise.all(runs)
  }

  /** A pane that fills its window resizes the window; any other takes from its neighbors. */
  #resize(client: Client | undefined, pane: string, cols: number, rows: number): void {
    if (client === undefined) return
    const { control, state } = client
    const window = state.panes.get(pane)?.window
    const isOnly = state.windows.find(({ id }) => id === window)?.panes.length === 1
    const commands =
      isOnly && window !== undefined
        ? this.#sizeCommands(window, cols, rows)
        : [`resize-pane -t ${pane} -x ${cols} -y ${rows}`]
    void control.run(...commands).catch(() => undefined)
  }

  /** `first`: the window to start a server with, where none runs. */
  async #open(first?: NewWindow): Promise<Client | 'missing' | 'stopped'> {
    if (this.#client !== undefined) return this.#client
    this.#opening ??= this.#connect(first).finally(() => (this.#opening = undefined))
    return this.#opening
  }

  /** Opens a client when a server has appeared since the last attempt. */
  async #attachToNew(): Promise<void> {
    const socket = this.#findSocket()
    if (this.#client !== undefined || socket === undefined || socket === this.#triedSocket) return
    this.#triedSocket = socket
    await this.#open()
  }

  /** Identifies the server's socket, which exists once a server was started; undefined without one. */
  #findSocket(): string | undefined {
    const { asUser, baseEnv, uid } = this.#deps
    try {
      // Only the user can read the folder.
      const stat = asUser(() => lstatSync(`${baseEnv['TMUX_TMPDIR'] ?? '/tmp'}/tmux-${uid}/default`))
      return `${stat.ino} ${stat.ctimeMs}`
    } catch {
      return undefined
    }
  }

  #pollForServer(): void {
    clearInterval(this.#poll)
    this.#poll =
      this.#listeners.size === 0 || this.#client !== undefined
        ? undefined
        : setInterval(() => void this.#attachToNew().catch(() => undefined), SERVER_POLL_MS)
  }

  async #connect(first: NewWindow | undefined): Promise<Client | 'missing' | 'stopped'> {
    let client: Client | undefined
    let hasEnded = false
    /** tmux refuses commands about the client before it is attached. */
    const attached = Promise.withResolvers<void>()
    const control = ControlClient.open(this.#deps.startProcess, this.#specOf(first), {
      message: (message) => {
        if (message.kind === 'notice' && message.name === 'session-changed') attached.resolve()
        if (client !== undefined) this.#take(message, client)
      },
      ended: () => {
        hasEnded = true
        attached.resolve()
        if (client !== undefined) this.#ended(client)
      },
    })
    if (control === undefined) return 'missing'
    try {
      const subscription = `refresh-client -B 'panes:%*:#{pane_current_command} #{pane_title}'`
      await raceTimeout(attached.promise, OPEN_MS, undefined)
      const opened = await raceTimeout(control.run(...STATE_COMMANDS, subscription), OPEN_MS, undefined)
      if (opened === undefined) {
        control.close()
        return 'stopped'
      }
      client = { control, state: readState(opened) }
      if (hasEnded) return 'stopped'
      this.#client = client
      this.#pollForServer()
      this.#restorePanes(client)
      this.#publish(viewOf(client.state))
      return client
    } catch (error) {
      if (error instanceof TmuxGoneError) return 'stopped'
      throw error
    }
  }

  #specOf(first: NewWindow | undefined): ProcessSpec {
    const { cwd, baseEnv } = this.#deps
    const named = first?.name === undefined ? [] : ['-n', formatArgument(first.name)]
    const placed = first?.cwd === undefined ? [] : ['-c', formatArgument(first.cwd)]
    const command = first
      ? ['new-session', '-A', '-s', SESSION_NAME, '-f', CLIENT_FLAGS, ...named, ...placed]
      : ['-N', 'attach-session', '-f', CLIENT_FLAGS]
    return {
      argv: ['tmux', '-u', '-C', ...command],
      cwd,
      // Otherwise tmux refuses to run inside itself, where sandboxd was started from it.
      env: Object.fromEntries(Object.entries(baseEnv).filter(([name]) => name !== 'TMUX')),
      mode: 'pipe',
      cols: 80,
      rows: 24,
    }
  }

  #take(message: Exclude<ControlMessage, { kind: 'reply' }>, client: Client): void {
    switch (message.kind) {
      case 'output':
        this.#lastOutputMs = this.#deps.now()
        for (const process of this.#processesOf(message.pane)) process.output(message.bytes)
        return
      case 'paused':
        this.#repaint(client.control, message.pane)
        return
      case 'notice':
        if (message.name === 'layout-change') this.#resized(message.text)
        this.#scheduleReload(client)
        return
      case 'exit':
        return
    }
  }

  /** tmux dropped output, because sandboxd did not run for minutes: shows the screen as it is now. */
  #repaint(control: ControlClient, pane: string): void {
    void control.run(`refresh-client -A '${pane}:continue'`).catch(() => undefined)
    for (const process of this.#processesOf(pane)) {
      process.output(new TextEncoder().encode('\u001Bc'))
      this.#draw(control, pane, process)
    }
  }

  /** The sizes are taken from the notice, because it stands between the output of before and after. */
  #resized(text: string): void {
    const [, full = '', visible = full] = text.split(' ')
    const layout = parseLayout(visible)
    if (layout !== undefined) this.#size(layout)
  }

  #size(cell: LayoutCell): void {
    if (cell.kind !== 'pane') for (const inner of cell.cells) this.#size(inner)
    else for (const process of this.#processesOf(cell.pane)) process.sized(cell.cols, cell.rows)
  }

  #scheduleReload(client: Client): void {
    this.#refresh ??= setTimeout(() => {
      this.#refresh = undefined
      void this.#reload(client).catch(() => undefined)
    }, REFRESH_MS)
  }

  async #reload(client: Client): Promise<void> {
    client.state = readState(await client.control.run(...STATE_COMMANDS))
    this.#updatePanes(client)
    this.#publish(viewOf(client.state))
  }

  /** Ends the processes of panes that are gone. tmux does not say how their programs ended. */
  #updatePanes({ state }: Client): void {
    for (const [pane, open] of Array.from(this.#panes)) {
      const known = state.panes.get(pane)
      if (known !== undefined) open.follow(known)
      else for (const process of open.all()) process.end({ code: 0, signal: null })
    }
  }

  /** Panes outlive a client; what they wrote without one is missing, so their screens are drawn anew. */
  #restorePanes(client: Client): void {
    this.#updatePanes(client)
    for (const pane of this.#panes.keys()) this.#repaint(client.control, pane)
  }

  /** The client ended, alone or with the server. */
  #ended(client: Client): void {
    if (this.#client !== client) return
    this.#client = undefined
    clearTimeout(this.#refresh)
    this.#refresh = setTimeout(() => {
      this.#refresh = undefined
      void this.#open().then(
        (opened) => {
          if (opened === 'stopped' || opened === 'missing') this.#stopped()
        },
        () => this.#stopped(),
      )
    }, REATTACH_MS)
  }

  #stopped(): void {
    this.#triedSocket = this.#findSocket()
    // The kernel hangs up the terminals of a server that is gone.
    for (const process of [...this.#panes.keys()].flatMap((pane) => this.#processesOf(pane)))
      process.end({ code: null, signal: 'SIGHUP' })
    this.#pollForServer()
    this.#publish({ state: 'stopped' })
  }

  #processesOf(pane: string): readonly PaneProcess[] {
    return this.#panes.get(pane)?.all() ?? []
  }

  #publish(view: TmuxView): void {
    const text = JSON.stringify(view)
    if (text === this.#lastView) return
    this.#lastView = text
    for (const listener of this.#listeners) listener(view)
  }
}

function viewOf({ windows }: TmuxState): TmuxView {
  return { state: 'running', windows }
}

/** Field 8 of `/proc/PID/stat`, after the name in parentheses. */
function foregroundGroupOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const group = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[5])
    return group > 1 ? group : undefined
  } catch {
    return undefined
  }
}
