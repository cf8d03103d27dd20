import { SandwireError } from '@sandwire/protocol'
import { shellQuote } from '@sandwire/shell-quote'
import { programName, formatHint } from '../text/command-line.ts'
import { agent } from './agent.ts'
import { audit } from './audit.ts'
import type { Command, CommandIo, Task } from './command.ts'
import { cp } from './cp.ts'
import { create } from './create.ts'
import { grants } from './grants.ts'
import { join } from './join.ts'
import { kill } from './kill.ts'
import { leave } from './leave.ts'
import { list } from './list.ts'
import { login } from './login.ts'
import { logout } from './logout.ts'
import { logs } from './logs.ts'
import { ls } from './ls.ts'
import type { CommandName } from './names.ts'
import { revoke } from './revoke.ts'
import { rm } from './rm.ts'
import { run } from './run.ts'
import { runs } from './runs.ts'
import { sessions } from './sessions.ts'
import { share } from './share.ts'
import { start } from './start.ts'
import { checkpoint } from './checkpoint.ts'
import { checkpoints } from './checkpoints.ts'
import { diff } from './diff.ts'
import { fork } from './fork.ts'
import { restore } from './restore.ts'
import { stop } from './stop.ts'
import { tmux } from './tmux.ts'
import { templates } from './templates.ts'
import { usage } from './usage.ts'
import { whoami } from './whoami.ts'
import { HintedError, InterruptedError, UsageError } from '../errors/errors.ts'
import { EXIT_USAGE, exitCodeOfError, exitCodeOfSignal } from '../errors/exit-code.ts'
import { messageWithOptions } from '../errors/field-names.ts'
import { hintFor, messageFor } from '../errors/hints.ts'
import { wrapHelp } from '../options/help.ts'
import { hideArgument } from '../options/process-arguments.ts'
import { type OptionTable, ParsedOptions } from '../options/parse-options.ts'
import { createApi } from '../server/api.ts'
import { findServer, type FoundServer } from '../server/find-server.ts'
import { printable } from '../text/printable.ts'

/** Every command by its name. */
export const COMMANDS: Readonly<Record<CommandName, Command>> = {
  list,
  create,
  start,
  stop,
  checkpoint,
  checkpoints,
  restore,
  fork,
  diff,
  rm,
  sessions,
  kill,
  logs,
  cp,
  ls,
  tmux,
  templates,
  login,
  logout,
  whoami,
  share,
  grants,
  revoke,
  leave,
  join,
  audit,
  usage,
  agent,
  runs,
  run,
}

type Environment = Readonly<Record<string, string | undefined>>

const COMMON_OPTIONS: OptionTable = {
  url: 'value',
  token: 'value',
  'token-file': 'value',
  json: 'flag',
  help: 'flag',
}
const COMMON_HELP = `
Server
  --url URL            server to use (default: SBX_URL, or the only one that runs on this machine)
  --token-file FILE    file with the token (default: SBX_TOKEN, then your sign-in, then the token file of a server on
                       this machine)
  --token TOKEN        the token itself; other users may see it
  --json               print the response as JSON
  --help
`

/** A parsed command line and the server it is for. */
interface Prepared {
  readonly task: Task
  readonly found: FoundServer
  readonly isJson: boolean
}

async function prepare(
  command: Command,
  options: ParsedOptions<OptionTable>,
  { env, io }: { readonly env: Environment; readonly io: CommandIo },
): Promise<Prepared> {
  if (options.command !== undefined)
    throw new UsageError('A command to run is only accepted with an address', 'sbx-stdio URL -- COMMAND')
  const token = options.value('token')
  const tokenFile = options.value('token-file')
  if (token !== undefined) hideArgument(token)
  if (token !== undefined && tokenFile !== undefined)
    throw new UsageError('Use either --token or --token-file, not both')
  const task = await command.parse(options, env, io)
  const url = options.value('url')
  if (url !== undefined && task.url !== undefined) throw new UsageError('The address is given twice')
  const server = { url: task.url ?? url, token, tokenFile, isAnonymous: task.isAnonymous === true }
  return { task, found: await findServer(server, env), isJson: options.has('json') }
}

function urlOptionFor(found: FoundServer | undefined): string {
  return found === undefined || found.isDefault ? '' : ` --url ${shellQuote(found.address)}`
}

/** Runs one command; returns the exit code. */
export async function runCommand(
  name: CommandName,
  argv: readonly string[],
  { env, io, nowMs }: { env: Environment; io: CommandIo; nowMs: number },
): Promise<number> {
  const command = COMMANDS[name]
  const help = `sbx-stdio ${name} --help`
  const program = programName(env)
  const fail = (message: string, hint: string, code: number): number => {
    io.info(message)
    io.hint(formatHint(hint, program))
    return code
  }
  let prepared: Prepared | undefined
  try {
    const options = new ParsedOptions<OptionTable>(argv, { ...command.options, ...COMMON_OPTIONS })
    if (options.has('help')) {
      io.print(wrapHelp(command.help + COMMON_HELP, io.columns))
      return 0
    }
    prepared = await prepare(command, options, { env, io })
    const { task, found, isJson } = prepared
    const { origin, credential, address: server } = found
    const common = { env, io, nowMs, isJson, program, server, origin, credential }
    return (await task.run({ ...common, urlOption: urlOptionFor(found), api: createApi(found) })) ?? 0
  } catch (caught) {
    if (caught instanceof InterruptedError) return exitCodeOfSignal(caught.signal)
    if (caught instanceof UsageError) return fail(caught.message, caught.hint ?? help, EXIT_USAGE)
    const error = SandwireError.from(caught)
    const isBadRequest = error.code === 'bad_request'
    const hint =
      isBadRequest && !(error instanceof HintedError) ? help : hintOf(error, prepared, name, program)
    const message = isBadRequest
      ? messageWithOptions(error, command.fields ?? {})
      : messageFor(error, prepared?.found.credential ?? 'none')
    return fail(printable(message), hint, exitCodeOfError(error))
  }
}

function hintOf(
  error: SandwireError,
  prepared: Prepared | undefined,
  action: CommandName,
  program: string,
): string {
  if (error instanceof HintedError) return error.hint
  const { found, task } = prepared ?? {}
  const urlOption = urlOptionFor(found)
  if (error.code === 'not_found' && task?.hintCommand !== undefined)
    return `list them: ${program} ${task.hintCommand}${urlOption}`
  return hintFor(error.code, {
    action,
    url: found?.address ?? '',
    // A user who was signing in has nothing else to try.
    credential: task?.isAnonymous === true ? 'signIn' : (found?.credential ?? 'none'),
    isLocal: found?.isLocal === true,
    program,
    reattach: undefined,
    sandbox: task?.sandbox,
    run: task?.runId,
    urlOption,
  })
}
