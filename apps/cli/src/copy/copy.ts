import type { CommandContext } from '../commands/command.ts'
import { Interrupted } from '../errors/interrupted.ts'
import { printable } from '../text/printable.ts'
import { spellJson } from '../text/table.ts'
import { bring } from './bring.ts'
import { Copying } from './copying.ts'
import type { Journey } from './journey.ts'
import { blame } from './local-fault.ts'
import type { Place } from './place.ts'
import { RemoteWorkspace } from './remote-workspace.ts'
import { send } from './send.ts'
import { wakeSandbox } from './wake-sandbox.ts'

/** Something was left out. */
const EXIT_INCOMPLETE = 1

export interface CopyRequest {
  readonly from: Place
  readonly to: Place
  readonly sandbox: string
  readonly isQuiet: boolean
}

function goesOn(path: string): string {
  return `stopped; what arrived of "${printable(path)}" is kept there for a day, and the same command goes on with it`
}

/** Does what `cp` was asked for; returns the exit code. */
export async function copy(request: CopyRequest, context: CommandContext): Promise<number> {
  const { io, api, isJson } = context
  using interruption = io.openInterruption()
  const { signal } = interruption
  const { from, to, sandbox, isQuiet } = request
  const canvas = isQuiet || (to.is === 'stream' && io.columns !== undefined) ? undefined : io.progress
  using copying = new Copying(canvas, () => performance.now())
  const journey: Journey = { remote: new RemoteWorkspace(api, sandbox, signal), copying, signal }
  try {
    const target = to.is === 'sandbox' ? to.path : from.is === 'sandbox' ? from.path : '.'
    await wakeSandbox(journey, target, { api, sandbox, say: (line) => (isQuiet ? undefined : io.say(line)) })
    if (from.is === 'sandbox' && to.is !== 'sandbox')
      await bring(journey, from, to).catch((error: unknown) => blame(error, to, 'to'))
    else if (to.is === 'sandbox' && from.is !== 'sandbox')
      await send(journey, from, to).catch((error: unknown) => blame(error, from, 'from'))
  } catch (error) {
    copying[Symbol.dispose]()
    if (copying.kept !== undefined && !isQuiet) io.say(goesOn(copying.kept))
    if (signal.aborted) throw new Interrupted(String(signal.reason))
    throw error
  } finally {
    copying[Symbol.dispose]()
  }
  for (const line of copying.leftOut.lines) io.say(line)
  // What goes to standard output is the file alone.
  if (isJson && to.is !== 'stream') io.print(spellJson(copying.sum))
  return copying.leftOut.count === 0 ? 0 : EXIT_INCOMPLETE
}
