import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import {
  AcpDriver,
  type AgentDriver,
  type AgentStart,
  type AgentState,
  type AgentView,
  ClaudeDriver,
  claudeCommand,
  claudeSettings,
  claudeToolServers,
  type DriverEffect,
  type DriverInput,
  LineSplitter,
  TERMINAL_SERVER,
  type ToolServer,
} from '@sandwire/agent'
import { EffectQueue, SandwireError } from '@sandwire/protocol'
import type { ProcessEnd, RunningProcess, StartProcess } from '../processes/process.ts'
import { isFailure } from '../processes/resolve-command.ts'
import type { AsUser } from '../processes/run-as.ts'
import type { Log } from '../log.ts'
import { recordBase, type TreeContext } from './base-tree/base-tree.ts'
import { makeDiff } from './base-tree/make-diff.ts'
import type { RunRecord } from './run-record.ts'
import { AgentTerminals, type AgentTerminalsDependencies } from './terminals/agent-terminals.ts'
import { relayArgv } from './terminals/relay.ts'
import { TerminalServer } from './terminals/terminal-server.ts'

/** Longest line of an agent; results of tools are written twice in theirs. */
const MAX_LINE_BYTES = 8 * 1024 * 1024
const MAX_STDERR_LINE_BYTES = 64 * 1024
/** From TERM to KILL for processes that the agent left behind. */
const LEFTOVER_MS = 1_000
/** Control answers at once. */
const WAKE_MS = 5_000
/** Timers take at most 2^31 - 1 milliseconds. */
const MAX_TIMER_MS = 2 ** 31 - 1

export interface AgentRunDependencies {
  readonly startProcess: StartProcess
  readonly asUser: AsUser
  readonly tree: (folder: string) => TreeContext
  readonly workspace: string
  readonly baseEnv: Readonly<Record<string, string>>
  /** Parent of the agent's folder for temporary files. */
  readonly temporaryFolder: string
  readonly now: () => number
  /** Wall time at which `now` is zero. */
  readonly epochMs: number
  readonly randomHex: (bytes: number) => string
  readonly terminals: AgentTerminalsDependencies
  readonly log: Log
}

/** One agent at work: runs its driver on a process, and stores what it emits. */
export class AgentRun {
  readonly record: RunRecord
  readonly #deps: AgentRunDependencies
  readonly #start: AgentStart
  readonly #driver: AgentDriver
  readonly #effects: EffectQueue<DriverEffect>
  readonly #stdout = new LineSplitter(MAX_LINE_BYTES)
  readonly #stderr = new LineSplitter(MAX_STDERR_LINE_BYTES)
  readonly #exited = Promise.withResolvers<void>()
  #process: RunningProcess | undefined
  #toolServers: readonly ToolServer[] = []
  #nowMs = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  /** Resolves when the result is stored. */
  readonly ended: Promise<void>

  constructor(record: RunRecord, start: AgentStart, deps: AgentRunDependencies) {
    this.record = record
    this.#deps = deps
    this.#start = start
    const options = record.meta.driver
    this.#driver =
      start.agent === 'acp' ? new AcpDriver(options, () => this.#toolServers) : new ClaudeDriver(options)
    this.#effects = new EffectQueue(
      (effect) => this.#perform(effect),
      () => this.#arm(),
    )
    record.reportState('preparing')
    this.ended = this.#run()
  }

  get state(): AgentState {
    return this.record.result === undefined ? this.#driver.state : 'ended'
  }

  view(): AgentView {
    const { record } = this
    const { usage, agentSessionId, model, stopping, outcome, pendingApprovals } = this.#driver
    return {
      run: record.meta.run,
      journal: record.meta.journal,
      state: this.state,
      lastSeq: record.events.lastSeq,
      startedMs: record.meta.startedMs,
      endedMs: record.result?.endedMs ?? null,
      reason: outcome?.status ?? stopping?.reason ?? null,
      message: outcome?.message ?? stopping?.message ?? null,
      agentSessionId,
      model,
      usage,
      approvals: pendingApprovals,
      isTamperProof: record.meta.isTamperProof,
    }
  }

  /** Gives the driver an input. Throws what the driver refuses. */
  on(input: DriverInput): void {
    // Whole milliseconds, as the journal has them.
    this.#nowMs = Math.floor(this.#deps.now())
    this.#effects.run(this.#driver.on(input, this.#nowMs))
  }

  get driver(): Pick<AgentDriver, 'messageView' | 'approvalView'> {
    return this.#driver
  }

  /** Kills the program without waiting for it; the run then ends with the reason that was given before. */
  kill(): void {
    this.#process?.signal('SIGKILL')
    void this.#process?.terminate({ hangupMs: 0, terminateMs: 0 })
  }

  async #run(): Promise<void> {
    const { tree, log } = this.#deps
    const { record } = this
    try {
      await recordBase(tree(record.folder))
      await this.#runProgram()
    } catch (error) {
      log.warn('agent_failed', { run: record.meta.run, message: String(error) })
      this.on({ kind: 'not_started', message: SandwireError.from(error).message })
    }
    clearTimeout(this.#timer)
    await this.#collect()
  }

  async #runProgram(): Promise<void> {
    const { asUser, temporaryFolder, startProcess, workspace, baseEnv } = this.#deps
    if (this.#driver.stopping !== undefined) return this.on({ kind: 'not_started', message: '' })
    const scratch = asUser(() => mkdtempSync(path.join(temporaryFolder, 'agent-')))
    using stack = new DisposableStack()
    const terminals = this.#openTerminals(scratch, stack)
    const { argv, env } = this.#prepareCommand(scratch)
    const process = startProcess(
      { argv, cwd: workspace, env: { ...baseEnv, ...env }, mode: 'pipe', cols: 0, rows: 0 },
      {
        output: (stream, chunk) => this.#output(stream, chunk),
        inputSettled: () => undefined,
        inputRefused: () => undefined,
        inputClosed: () => undefined,
        resized: () => undefined,
        ended: (end) => this.#ended(end),
      },
    )
    if (isFailure(process)) return this.on({ kind: 'not_started', message: process.message })
    this.#process = process
    this.on({ kind: 'started' })
    await this.#exited.promise
    // Servers and other processes that it started could still change files.
    await process.terminate({ hangupMs: 0, terminateMs: LEFTOVER_MS })
    stack.dispose()
    await terminals?.end()
    asUser(() => rmSync(scratch, { recursive: true, force: true }))
  }

  /** Offers terminals to the agent until `stack` is disposed. */
  #openTerminals(scratch: string, stack: DisposableStack): AgentTerminals | undefined {
    if (this.#start.terminals !== true) return undefined
    const { asUser, terminals: deps } = this.#deps
    const name = path.basename(this.#start.program)
    const terminals = new AgentTerminals(this.record.meta.run, name, deps)
    const socket = path.join(scratch, 'terminals.sock')
    stack.use(new TerminalServer(socket, terminals, asUser))
    this.#toolServers = [{ name: TERMINAL_SERVER, argv: relayArgv(socket) }]
    return terminals
  }

  /** Command and environment of the agent's program. `scratch` is a folder for its temporary files, which gets those that the command names. */
  #prepareCommand(scratch: string): ReturnType<typeof claudeCommand> {
    const start = this.#start
    if (start.agent !== 'claude')
      return { argv: [start.program, ...(start.args ?? [])], env: { TMPDIR: scratch, ...start.env } }
    const settings = path.join(scratch, 'settings.json')
    const toolServers = path.join(scratch, 'tool-servers.json')
    const hasTools = this.#toolServers.length > 0
    const command = claudeCommand(start, { scratch, settings, ...(hasTools ? { toolServers } : {}) })
    this.#deps.asUser(() => {
      writeFileSync(settings, claudeSettings(command.env), { mode: 0o600 })
      if (hasTools) writeFileSync(toolServers, claudeToolServers(this.#toolServers), { mode: 0o600 })
    })
    return command
  }

  #output(stream: 'stdout' | 'stderr', chunk: Uint8Array): void {
    const splitter = stream === 'stdout' ? this.#stdout : this.#stderr
    for (const line of splitter.push(chunk)) this.#line(stream, line)
  }

  #line(
    stream: 'stdout' | 'stderr',
    { text, isCut }: { readonly text: string; readonly isCut: boolean },
  ): void {
    this.on(stream === 'stdout' ? { kind: 'line', text, isCut } : { kind: 'stderr', text: `${text}\n` })
  }

  #ended({ code, signal }: ProcessEnd): void {
    for (const line of this.#stdout.end()) this.#line('stdout', line)
    for (const line of this.#stderr.end()) this.#line('stderr', line)
    this.on({ kind: 'exit', code, signal })
    this.#exited.resolve()
  }

  async #collect(): Promise<void> {
    const { usage, agentSessionId, model, announcedFiles, outcome } = this.#driver
    if (outcome === undefined) return
    const totals = { usage, agentSessionId, model, announcedFiles }
    this.record.finish(outcome, totals, await collectDiff(this.record, this.#deps))
    this.#wake()
  }

  /** Asks control to check the run now. Control also polls, so a lost request only delays it. */
  #wake(): void {
    const { wake } = this.#start
    if (wake === undefined) return
    const headers = { authorization: `Bearer ${wake.token}` }
    const signal = AbortSignal.timeout(WAKE_MS)
    void fetch(wake.url, { method: 'POST', headers, signal, redirect: 'manual' }).catch(() => undefined)
  }

  #perform(effect: DriverEffect): void {
    switch (effect.kind) {
      case 'record':
        return this.record.record(effect.input, this.#nowMs)
      case 'emit':
        this.record.emit(effect.event)
        if (effect.event.type === 'awaiting_input') this.#wake()
        return
      case 'partial':
        return this.record.feed.partial({ partial: effect.partial })
      case 'partial_line':
        return this.record.lineFeed.partial({ kind: 'line', line: effect.line })
      case 'write':
        return this.#process?.write(Buffer.from(`${effect.line}\n`))
      case 'end_input':
        return this.#process?.closeInput()
      case 'signal':
        if (effect.name === 'SIGTERM') this.#process?.signal('SIGTERM')
        else this.kill()
    }
  }

  #arm(): void {
    clearTimeout(this.#timer)
    const { deadlineMs } = this.#driver
    if (deadlineMs === undefined) return
    const waitMs = Math.min(MAX_TIMER_MS, Math.max(1, Math.ceil(deadlineMs - this.#deps.now())))
    this.#timer = setTimeout(() => this.on({ kind: 'tick' }), waitMs)
  }
}

export type CollectDependencies = Pick<AgentRunDependencies, 'tree' | 'temporaryFolder' | 'log'>

/** The diff of a run whose processes have ended, or why there is none. */
export async function collectDiff(
  record: RunRecord,
  { tree, temporaryFolder, log }: CollectDependencies,
): Promise<Parameters<RunRecord['finish']>[2]> {
  const { base, folder, patchFile, packFile, meta } = record
  if (base === undefined) return { diff: null, diffProblem: 'The run ended before its files were recorded' }
  const options = { patchFile, packFile, secrets: meta.secrets }
  const contexts = [tree(folder), { ...tree(folder), scratchParent: temporaryFolder }]
  let diffProblem = ''
  // The second attempt is for a disk that the run has filled: git then writes to memory.
  for (const context of contexts) {
    try {
      return { diff: await makeDiff(context, base, options), diffProblem: null }
    } catch (error) {
      log.warn('agent_diff_failed', { run: meta.run, message: String(error) })
      diffProblem = SandwireError.from(error).message
    }
  }
  return { diff: null, diffProblem }
}
