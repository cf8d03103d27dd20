import { SandwireError } from '@sandwire/protocol'
import { createApi } from '../api.ts'
import { programName, quote, spellHint } from '../come-back.ts'
import { EXIT_USAGE, exitCodeOfError } from '../exit-code.ts'
import { findServer, type FoundServer } from '../find-server.ts'
import { hideArgument } from '../hidden-argument.ts'
import { hintFor } from '../hints.ts'
import { printable } from '../printable.ts'
import { type OptionTable, Words, Wrong } from '../words.ts'
import type { Command, CommandIo, Task } from './command.ts'
import { create } from './create.ts'
import { kill } from './kill.ts'
import { list } from './list.ts'
import { logs } from './logs.ts'
import type { CommandName } from './names.ts'
import { rm } from './rm.ts'
import { sessions } from './sessions.ts'
import { start } from './start.ts'
import { stop } from './stop.ts'

type Environment = Readonly<Record<string, string | undefined>>

const COMMANDS: Readonly<Record<CommandName, Command>> = {
  list,
  create,
  start,
  stop,
  rm,
  sessions,
  kill,
  logs,
}

const COMMON_OPTIONS: OptionTable = {
  url: 'once',
  token: 'once',
  'token-file': 'once',
  json: 'flag',
  help: 'flag',
}
const COMMON_HELP = `
Server
  --url URL            server to ask (default: SBX_URL, or the only one that runs on this machine)
  --token-file FILE    file that holds the token (default: SBX_TOKEN, or the file of a server on this machine)
  --token TOKEN        the token itself; other users may glimpse it
  --json               print the answer as JSON
  --help
`

/** What the words ask for. */
interface Understood {
  readonly task: Task
  readonly found: FoundServer
  readonly isJson: boolean
}

async function understand(
  command: Command,
  words: Words<OptionTable>,
  env: Environment,
): Promise<Understood> {
  if (words.command !== undefined) throw new Wrong('There is nothing to run here', 'sbx-stdio URL -- COMMAND')
  const token = words.one('token')
  const tokenFile = words.one('token-file')
  if (token !== undefined) hideArgument(token)
  if (token !== undefined && tokenFile !== undefined)
    throw new Wrong('Give --token or --token-file, not both')
  const task = command.read(words, env)
  return {
    task,
    found: await findServer({ url: words.one('url'), token, tokenFile }, env),
    isJson: words.has('json'),
  }
}

/** Runs one command to its end; returns the exit code. */
export async function runCommand(
  name: CommandName,
  argv: readonly string[],
  { env, io, nowMs }: { env: Environment; io: CommandIo; nowMs: number },
): Promise<number> {
  const command = COMMANDS[name]
  const help = `sbx-stdio ${name} --help`
  const program = programName(env)
  /** Says what went wrong and what to do about it; returns the exit code. */
  const fail = (message: string, hint: string, code: number): number => {
    io.say(message)
    io.hint(spellHint(hint, program))
    return code
  }
  let understood: Understood | undefined
  try {
    const words = new Words<OptionTable>(argv, { ...command.options, ...COMMON_OPTIONS })
    if (words.has('help')) {
      io.print(command.help + COMMON_HELP)
      return 0
    }
    understood = await understand(command, words, env)
    const { task, found, isJson } = understood
    const urlOption = found.isDefault ? '' : ` --url ${quote(found.address)}`
    const common = { env, io, nowMs, isJson, urlOption, program, server: found.address }
    await task.run({ ...common, api: createApi(found) })
    return 0
  } catch (caught) {
    if (caught instanceof Wrong) return fail(caught.message, caught.hint ?? help, EXIT_USAGE)
    const error = SandwireError.from(caught)
    const hint = error.code === 'bad_request' ? help : hintOf(error, understood, program)
    return fail(printable(error.message), hint, exitCodeOfError(error))
  }
}

function hintOf({ code }: SandwireError, understood: Understood | undefined, program: string): string {
  const found = understood?.found
  return hintFor(code, {
    url: found?.address ?? '',
    hasToken: found?.token !== undefined,
    isOwn: found?.isOwn === true,
    program,
    comeBack: undefined,
    sandbox: understood?.task.sandbox,
    urlOption: found === undefined || found.isDefault ? '' : ` --url ${quote(found.address)}`,
  })
}
