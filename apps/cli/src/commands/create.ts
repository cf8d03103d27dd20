import { shellQuote } from '@sandwire/shell-quote'
import type { Command, CommandOptions } from './command.ts'
import { optionalSandbox } from './positionals.ts'
import { decodeSandbox } from './responses.ts'
import type { FieldNames } from '../errors/field-names.ts'
import { parseEnvOptions, validateVariables } from '../options/attach-options.ts'
import { UsageError } from '../errors/errors.ts'
import { parseBytes, parseSeconds } from '../text/amounts.ts'
import { printable } from '../text/printable.ts'
import { formatJson } from '../text/table.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** Body of `POST /api/sandboxes`; the server has defaults for omitted fields. */
export interface CreateBody {
  readonly name?: string
  readonly network?: { readonly policy: 'none' | 'allowlist' | 'open'; readonly allow: readonly string[] }
  readonly limits?: Readonly<Record<string, number>>
  readonly env?: Readonly<Record<string, string>>
  readonly sleepAfterSeconds?: number | null
  readonly start?: false
}

/** The options for the fields of the body. */
const CREATE_FIELDS: FieldNames = {
  name: { option: 'NAME' },
  network: { option: '--network' },
  'network.policy': { option: '--network' },
  'network.allow': { option: '--allow' },
  'limits.memoryBytes': { option: '--memory', unit: 'bytes' },
  'limits.diskBytes': { option: '--disk', unit: 'bytes' },
  'limits.milliCpus': { option: '--cpus', unit: 'thousandths of a CPU' },
  'limits.pids': { option: '--pids' },
  env: { option: '--env' },
  sleepAfterSeconds: { option: '--sleep-after', unit: 'seconds' },
}

const POLICIES = ['none', 'allowlist', 'open'] as const

function parseNetwork(options: CommandOptions): CreateBody['network'] {
  const allow = options.values('allow')
  const given = options.value('network') ?? (allow.length > 0 ? 'allowlist' : undefined)
  if (given === undefined) return undefined
  const policy = POLICIES.find((each) => each === given)
  if (policy === undefined) throw new UsageError(`Option "--network" must be ${POLICIES.join(' or ')}`)
  if (allow.length > 0 && policy !== 'allowlist')
    throw new UsageError(`Option "--allow" cannot be used with "--network ${policy}"`)
  return { policy, allow }
}

function parseBytesOption(options: CommandOptions, name: string): number | undefined {
  const text = options.value(name)
  const bytes = text === undefined ? undefined : parseBytes(text)
  if (text !== undefined && bytes === undefined)
    throw new UsageError(`Option "--${name}" must be a size such as 512M or 2G`)
  return bytes
}

function parseCpus(options: CommandOptions): number | undefined {
  const text = options.value('cpus')
  if (text === undefined) return undefined
  if (!/^[0-9]{1,3}(\.[0-9]{1,3})?$/.test(text) || Number(text) === 0)
    throw new UsageError('Option "--cpus" must be a number such as 0.5 or 2')
  return Math.round(Number(text) * 1000)
}

function parsePids(options: CommandOptions): number | undefined {
  const text = options.value('pids')
  if (text !== undefined && !/^[1-9][0-9]{0,5}$/.test(text))
    throw new UsageError('Option "--pids" must be a whole number')
  return text === undefined ? undefined : Number(text)
}

function parseSleepAfter(options: CommandOptions): number | null | undefined {
  const text = options.value('sleep-after')
  if (text === undefined) return undefined
  if (text === 'never') return null
  const seconds = parseSeconds(text)
  if (seconds === undefined || seconds === 0)
    throw new UsageError('Option "--sleep-after" must be a time such as 90s, 10m or 2h, or never')
  return seconds
}

function parseEnv(options: CommandOptions, env: Environment): Record<string, string> {
  const entries: [string, string][] = []
  for (const [name, given] of parseEnvOptions(options.values('env'))) {
    const value = given ?? env[name]
    if (value === undefined)
      throw new UsageError(`Variable "${name}" is not set in this shell`, '--env NAME=VALUE')
    entries.push([name, value])
  }
  const variables = Object.fromEntries(entries)
  validateVariables(variables)
  return variables
}

/** The defined entries; undefined when there are none. */
function present<T>(entries: Readonly<Record<string, T | undefined>>): Record<string, T> | undefined {
  const kept = Object.entries(entries).flatMap(([name, value]): [string, T][] =>
    value === undefined ? [] : [[name, value]],
  )
  return kept.length === 0 ? undefined : Object.fromEntries(kept)
}

/** Builds the request body from the options of `create`. */
export function parseCreateBody(
  options: CommandOptions,
  name: string | undefined,
  env: Environment,
): CreateBody {
  const network = parseNetwork(options)
  const limits = present({
    memoryBytes: parseBytesOption(options, 'memory'),
    pids: parsePids(options),
    milliCpus: parseCpus(options),
    diskBytes: parseBytesOption(options, 'disk'),
  })
  const variables = present(parseEnv(options, env))
  const sleepAfterSeconds = parseSleepAfter(options)
  return {
    ...(name === undefined ? {} : { name }),
    ...(network === undefined ? {} : { network }),
    ...(limits === undefined ? {} : { limits }),
    ...(variables === undefined ? {} : { env: variables }),
    ...(sleepAfterSeconds === undefined ? {} : { sleepAfterSeconds }),
    ...(options.has('no-start') ? { start: false } : {}),
  }
}

/** Creates a sandbox and prints how to attach to it. */
export const create: Command = {
  help: `Usage: sbx-stdio create [NAME] [options]

Creates a sandbox, starts it, and prints its name. Without NAME, the server chooses one.

  --network POLICY     none (the server's default), allowlist, or open (every public host)
  --allow HOST         with allowlist: a host, *.host, host:port, or a set such as set:npm, set:pypi, set:debian,
                       set:github, set:crates, set:go (repeatable; implies --network allowlist)
  --memory SIZE        such as 512M or 2G
  --disk SIZE          space for its files
  --cpus NUMBER        such as 0.5 or 2
  --pids NUMBER        number of processes and threads
  --sleep-after TIME   stop after this time without input and output: 90s, 10m, 2h, or never
  --env NAME[=VALUE]   variable for all its processes (repeatable); not for secrets
  --no-start           create it without starting it
`,
  options: {
    network: 'value',
    allow: 'values',
    memory: 'value',
    disk: 'value',
    cpus: 'value',
    pids: 'value',
    'sleep-after': 'value',
    env: 'values',
    'no-start': 'flag',
  },
  fields: CREATE_FIELDS,
  parse: (options, env) => {
    const name = optionalSandbox(options)
    const body = parseCreateBody(options, name, env)
    return {
      ...(name === undefined ? {} : { sandbox: name }),
      run: async ({ api, io, isJson, program, server }) => {
        const response = await api.request('POST', '/api/sandboxes', body)
        if (isJson) {
          io.print(formatJson(response))
          return
        }
        const created = printable(decodeSandbox(response).name)
        io.print(`${created}\n`)
        io.info(`attach with: ${program} ${shellQuote(server)} --sandbox ${shellQuote(created)}`)
      },
    }
  },
}
