import { shellQuote } from '@sandwire/shell-quote'
import type { Command, CommandOptions } from './command.ts'
import { optionalSandbox } from './positionals.ts'
import { decodeSandbox } from './responses.ts'
import type { FieldNames } from '../errors/field-names.ts'
import { validateVariables } from '../options/attach-options.ts'
import { parseEnvOptions, UsageError } from '../options/words.ts'
import { parseBytes, parseSeconds } from '../text/amounts.ts'
import { printable } from '../text/printable.ts'
import { formatJson } from '../text/table.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** What `POST /api/sandboxes` takes; what is left out is the server's to decide. */
export interface CreateBody {
  readonly name?: string
  readonly network?: { readonly policy: 'none' | 'allowlist' | 'open'; readonly allow: readonly string[] }
  readonly limits?: Readonly<Record<string, number>>
  readonly env?: Readonly<Record<string, string>>
  readonly sleepAfterSeconds?: number | null
  readonly start?: false
}

/** What the fields of that are called on the command line. */
export const CREATE_FIELDS: FieldNames = {
  name: { option: 'NAME' },
  network: { option: '--network' },
  'network.policy': { option: '--network' },
  'network.allow': { option: '--allow' },
  'limits.memoryBytes': { option: '--memory', counts: 'bytes' },
  'limits.diskBytes': { option: '--disk', counts: 'bytes' },
  'limits.milliCpus': { option: '--cpus', counts: 'thousandths' },
  'limits.pids': { option: '--pids' },
  env: { option: '--env' },
  sleepAfterSeconds: { option: '--sleep-after', counts: 'seconds' },
}

const POLICIES = ['none', 'allowlist', 'open'] as const

function readNetwork(words: CommandOptions): CreateBody['network'] {
  const allow = words.all('allow')
  const given = words.one('network') ?? (allow.length > 0 ? 'allowlist' : undefined)
  if (given === undefined) return undefined
  const policy = POLICIES.find((each) => each === given)
  if (policy === undefined) throw new UsageError(`Option "--network" takes ${POLICIES.join(' or ')}`)
  if (allow.length > 0 && policy !== 'allowlist')
    throw new UsageError(`Option "--allow" does not go with "--network ${policy}"`)
  return { policy, allow }
}

function readBytes(words: CommandOptions, name: string): number | undefined {
  const text = words.one(name)
  const bytes = text === undefined ? undefined : parseBytes(text)
  if (text !== undefined && bytes === undefined)
    throw new UsageError(`Option "--${name}" takes a size such as 512M or 2G`)
  return bytes
}

function readCpus(words: CommandOptions): number | undefined {
  const text = words.one('cpus')
  if (text === undefined) return undefined
  if (!/^[0-9]{1,3}(\.[0-9]{1,3})?$/.test(text) || Number(text) === 0)
    throw new UsageError('Option "--cpus" takes a number such as 0.5 or 2')
  return Math.round(Number(text) * 1000)
}

function readPids(words: CommandOptions): number | undefined {
  const text = words.one('pids')
  if (text !== undefined && !/^[1-9][0-9]{0,5}$/.test(text))
    throw new UsageError('Option "--pids" takes a whole number')
  return text === undefined ? undefined : Number(text)
}

function readSleepAfter(words: CommandOptions): number | null | undefined {
  const text = words.one('sleep-after')
  if (text === undefined) return undefined
  if (text === 'never') return null
  const seconds = parseSeconds(text)
  if (seconds === undefined || seconds === 0)
    throw new UsageError('Option "--sleep-after" takes a time such as 90s, 10m or 2h, or never')
  return seconds
}

function readEnv(words: CommandOptions, env: Environment): Record<string, string> {
  const entries: [string, string][] = []
  for (const [name, given] of parseEnvOptions(words.all('env'))) {
    const value = given ?? env[name]
    if (value === undefined) throw new UsageError(`Variable "${name}" has no value here`, '--env NAME=VALUE')
    entries.push([name, value])
  }
  const variables = Object.fromEntries(entries)
  validateVariables(variables)
  return variables
}

/** The entries that have a value; undefined when none has. */
function present<T>(entries: Readonly<Record<string, T | undefined>>): Record<string, T> | undefined {
  const kept = Object.entries(entries).flatMap(([name, value]): [string, T][] =>
    value === undefined ? [] : [[name, value]],
  )
  return kept.length === 0 ? undefined : Object.fromEntries(kept)
}

/** Reads the options of `create` into the request. */
export function readCreateBody(
  words: CommandOptions,
  name: string | undefined,
  env: Environment,
): CreateBody {
  const network = readNetwork(words)
  const limits = present({
    memoryBytes: readBytes(words, 'memory'),
    pids: readPids(words),
    milliCpus: readCpus(words),
    diskBytes: readBytes(words, 'disk'),
  })
  const variables = present(readEnv(words, env))
  const sleepAfterSeconds = readSleepAfter(words)
  return {
    ...(name === undefined ? {} : { name }),
    ...(network === undefined ? {} : { network }),
    ...(limits === undefined ? {} : { limits }),
    ...(variables === undefined ? {} : { env: variables }),
    ...(sleepAfterSeconds === undefined ? {} : { sleepAfterSeconds }),
    ...(words.has('no-start') ? { start: false } : {}),
  }
}

/** Makes a sandbox and says how to get in. */
export const create: Command = {
  help: `Usage: sbx-stdio create [NAME] [options]

Makes a sandbox, starts it, and prints its name. Without NAME the server makes one up.

  --network POLICY     none (the server's default), allowlist, or open (every public host)
  --allow HOST         with allowlist: a host, *.host, host:port, or a set such as set:npm, set:pypi, set:debian,
                       set:github, set:crates, set:go (repeatable; implies --network allowlist)
  --memory SIZE        such as 512M or 2G
  --disk SIZE          room for its files
  --cpus NUMBER        such as 0.5 or 2
  --pids NUMBER        processes and threads
  --sleep-after TIME   stop after so long without input and output: 90s, 10m, 2h, or never
  --env NAME[=VALUE]   variable of every process in it (repeatable); never a secret
  --no-start           only make it
`,
  options: {
    network: 'once',
    allow: 'repeatable',
    memory: 'once',
    disk: 'once',
    cpus: 'once',
    pids: 'once',
    'sleep-after': 'once',
    env: 'repeatable',
    'no-start': 'flag',
  },
  fields: CREATE_FIELDS,
  read: (words, env) => {
    const name = optionalSandbox(words)
    const body = readCreateBody(words, name, env)
    return {
      ...(name === undefined ? {} : { sandbox: name }),
      run: async ({ api, io, isJson, program, server }) => {
        const answer = await api.request('POST', '/api/sandboxes', body)
        if (isJson) {
          io.print(formatJson(answer))
          return
        }
        const made = printable(decodeSandbox(answer).name)
        io.print(`${made}\n`)
        io.say(`run something in it: ${program} ${shellQuote(server)} --sandbox ${shellQuote(made)}`)
      },
    }
  },
}
