import { formatEvent } from '@sandwire/agent'
import { SandwireError } from '@sandwire/protocol'
import type { CommandContext } from '../commands/command.ts'
import { printable } from '../text/printable.ts'
import { followRun, readRun } from './run-api.ts'
import { type ConsoleEffect, RunConsole } from './run-console.ts'

/** How a run was left: it is complete, or it goes on without this terminal. */
export type WatchEnd = 'complete' | 'detached'

/** Between two looks at the spend. */
const REFRESH_MS = 3_000
const CLEAR_LINE = '\r\u001b[K'
const DEFAULT_COLUMNS = 80

/** Prints the events of a run until it is complete. On a terminal, typed lines steer the agent. */
export async function watchRun(context: CommandContext, id: string, after = 0): Promise<WatchEnd> {
  const { io, isJson } = context
  if (isJson) return printEvents(context, id, after, (entry) => io.print(`${JSON.stringify(entry)}\n`))
  if (io.openKeyboard === undefined || io.progress === undefined)
    return printEvents(context, id, after, (entry) => io.write(formatEvent(entry)))
  return watchOnTerminal(context, id, after)
}

type Entry = Parameters<RunConsole['event']>[0]

async function printEvents(
  { api, io }: CommandContext,
  id: string,
  after: number,
  show: (entry: Entry) => void,
): Promise<WatchEnd> {
  using interruption = io.openInterruption()
  const { signal } = interruption
  const deps = { api, wait: io.wait, nowMs: () => Date.now() }
  for await (const entry of followRun(deps, id, after, signal)) show(entry)
  return signal.aborted ? 'detached' : 'complete'
}

async function watchOnTerminal(context: CommandContext, id: string, after: number): Promise<WatchEnd> {
  const { api, io } = context
  const ended = new AbortController()
  const view = new RunConsole()
  const columns = (): number => io.progress?.columns() ?? DEFAULT_COLUMNS
  const redraw = (): void => io.write(`${CLEAR_LINE}${view.statusLine(columns())}`)
  const perform = (effects: readonly ConsoleEffect[]): void => {
    for (const effect of effects) {
      if (effect.type === 'print') io.write(`${CLEAR_LINE}${effect.text}`)
      else if (effect.type === 'detach') ended.abort('detached')
      else void request(effect).catch(printError)
    }
    redraw()
  }
  const printError = (error: unknown): void =>
    perform([{ type: 'print', text: `${printable(SandwireError.from(error).message)}\n` }])
  const request = async (effect: Exclude<ConsoleEffect, { type: 'print' | 'detach' }>): Promise<void> => {
    const base = `/api/runs/${id}`
    switch (effect.type) {
      case 'message':
        await api.request('POST', `${base}/messages`, { text: effect.text, id: crypto.randomUUID() })
        return
      case 'approve':
        await api.request('POST', `${base}/approvals/${effect.requestId}`, effect.answer)
        return
      case 'interrupt':
        perform([{ type: 'print', text: 'Interrupting; Ctrl-C again aborts the run\n' }])
        await api.request('POST', `${base}/interrupt`)
        return
      case 'abort':
        perform([{ type: 'print', text: 'Aborting\n' }])
        await api.request('POST', `${base}/abort`)
    }
  }
  const refresh = async (): Promise<void> => {
    while (!ended.signal.aborted) {
      // The next look may succeed.
      const run = await readRun(api, id).catch(() => undefined)
      if (run !== undefined && !ended.signal.aborted) {
        view.setState(run.state)
        view.setCost(run.usage.costUsd)
        redraw()
      }
      await io.wait(REFRESH_MS, ended.signal).catch(() => undefined)
    }
  }
  using _keyboard = io.openKeyboard?.((keys) => perform(view.keys(keys, performance.now())))
  void refresh()
  try {
    const deps = { api, wait: io.wait, nowMs: () => Date.now() }
    for await (const entry of followRun(deps, id, after, ended.signal)) perform(view.event(entry))
    return ended.signal.aborted ? 'detached' : 'complete'
  } finally {
    ended.abort('complete')
    io.write(CLEAR_LINE)
  }
}
