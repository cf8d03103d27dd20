import { SandwireError } from '@sandwire/protocol'
import { shellQuote } from '@sandwire/shell-quote'
import { AdvisedError } from '../errors/advised-error.ts'
import { createApi } from '../server/api.ts'
import { programName, spellHint } from '../attach/come-back.ts'
import { EXIT_USAGE, exitCodeOfError, exitCodeOfSignal } from '../errors/exit-code.ts'
import { findServer, type FoundServer } from '../server/find-server.ts'
import { fitHelp } from '../options/fit-help.ts'
import { hideArgument } from '../options/hidden-argument.ts'
import { spellFields } from '../errors/field-names.ts'
import { hintFor, messageFor } from '../errors/hints.ts'
import { Interrupted } from '../errors/interrupted.ts'
import { printable } from '../text/printable.ts'
import { type OptionTable, Words, Wrong } from '../options/words.ts'
import type { Command, CommandIo, Task } from './command.ts'
import type { CommandName } from './names.ts'
import { COMMANDS } from './registry.ts'

type Environment = Readonly<Record<string, string | undefined>>

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
  --token-file FILE    file that holds the token (default: SBX_TOKEN, or what login stored, or the file of a server on
                       this machine)
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
  { env, io }: { readonly env: Environment; readonly io: CommandIo },
): Promise<Understood> {
  if (words.command !== undefined) throw new Wrong('There is nothing to run here', 'sbx-stdio URL -- COMMAND')
  const token = words.one('token')
  const tokenFile = words.one('token-file')
  if (token !== undefined) hideArgument(token)
  if (token !== undefined && tokenFile !== undefined)
    throw new Wrong('Give --token or --token-file, not both')
  const task = await command.read(words, env, io)
  const url = words.one('url')
  if (url !== undefined && task.url !== undefined) throw new Wrong('Give the address of the server once')
  const server = { url: task.url ?? url, token, tokenFile, isAnonymous: task.isAnonymous === true }
  return {
    task,
    found: await findServer(server, env),
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
      io.print(fitHelp(command.help + COMMON_HELP, io.columns))
      return 0
    }
    understood = await understand(command, words, { env, io })
    const { task, found, isJson } = understood
    const urlOption = found.isDefault ? '' : ` --url ${shellQuote(found.address)}`
    const { origin, credential, address: server } = found
    const common = { env, io, nowMs, isJson, urlOption, program, server, origin, credential }
    return (await task.run({ ...common, api: createApi(found) })) ?? 0
  } catch (caught) {
    if (caught instanceof Interrupted) return exitCodeOfSignal(caught.signal)
    if (caught instanceof Wrong) return fail(caught.message, caught.hint ?? help, EXIT_USAGE)
    const error = SandwireError.from(caught)
    const hint =
      error.code === 'bad_request' && !(error instanceof AdvisedError)
        ? help
        : hintOf(error, understood, { doing: name, program })
    const message = messageFor(error, understood?.found.credential ?? 'none')
    const told = error.code === 'bad_request' ? spellFields(message, command.fields ?? {}) : message
    return fail(printable(told), hint, exitCodeOfError(error))
  }
}

function hintOf(
  error: SandwireError,
  understood: Understood | undefined,
  { doing, program }: { readonly doing: CommandName; readonly program: string },
): string {
  if (error instanceof AdvisedError) return error.hint
  const { found, task } = understood ?? {}
  const urlOption = found === undefined || found.isDefault ? '' : ` --url ${shellQuote(found.address)}`
  if (error.code === 'not_found' && task?.whichThereAre !== undefined)
    return `see which there are: ${program} ${task.whichThereAre}${urlOption}`
  return hintFor(error.code, {
    doing,
    url: found?.address ?? '',
    // Whoever was about to sign in has nothing else to try.
    credential: task?.isAnonymous === true ? 'signIn' : (found?.credential ?? 'none'),
    isOwn: found?.isOwn === true,
    program,
    comeBack: undefined,
    sandbox: task?.sandbox,
    urlOption,
  })
}
