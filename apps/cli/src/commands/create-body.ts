import { parseBytes, parseSeconds } from '../text/amounts.ts'
import type { FieldNames } from '../errors/field-names.ts'
import { checkVariables } from '../options/env-limits.ts'
import { readEnvOption, Wrong } from '../options/words.ts'
import type { ReadWords } from './command.ts'

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

function readNetwork(words: ReadWords): CreateBody['network'] {
  const allow = words.all('allow')
  const given = words.one('network') ?? (allow.length > 0 ? 'allowlist' : undefined)
  if (given === undefined) return undefined
  const policy = POLICIES.find((each) => each === given)
  if (policy === undefined) throw new Wrong(`Option "--network" takes ${POLICIES.join(' or ')}`)
  if (allow.length > 0 && policy !== 'allowlist')
    throw new Wrong(`Option "--allow" does not go with "--network ${policy}"`)
  return { policy, allow }
}

function readBytes(words: ReadWords, name: string): number | undefined {
  const text = words.one(name)
  const bytes = text === undefined ? undefined : parseBytes(text)
  if (text !== undefined && bytes === undefined)
    throw new Wrong(`Option "--${name}" takes a size such as 512M or 2G`)
  return bytes
}

function readCpus(words: ReadWords): number | undefined {
  const text = words.one('cpus')
  if (text === undefined) return undefined
  if (!/^[0-9]{1,3}(\.[0-9]{1,3})?$/.test(text) || Number(text) === 0)
    throw new Wrong('Option "--cpus" takes a number such as 0.5 or 2')
  return Math.round(Number(text) * 1000)
}

function readPids(words: ReadWords): number | undefined {
  const text = words.one('pids')
  if (text !== undefined && !/^[1-9][0-9]{0,5}$/.test(text))
    throw new Wrong('Option "--pids" takes a whole number')
  return text === undefined ? undefined : Number(text)
}

function readSleepAfter(words: ReadWords): number | null | undefined {
  const text = words.one('sleep-after')
  if (text === undefined) return undefined
  if (text === 'never') return null
  const seconds = parseSeconds(text)
  if (seconds === undefined || seconds === 0)
    throw new Wrong('Option "--sleep-after" takes a time such as 90s, 10m or 2h, or never')
  return seconds
}

function readEnv(words: ReadWords, env: Environment): Record<string, string> {
  const entries: [string, string][] = []
  for (const [name, given] of readEnvOption(words.all('env'))) {
    const value = given ?? env[name]
    if (value === undefined) throw new Wrong(`Variable "${name}" has no value here`, '--env NAME=VALUE')
    entries.push([name, value])
  }
  const variables = Object.fromEntries(entries)
  checkVariables(variables)
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
export function readCreateBody(words: ReadWords, name: string | undefined, env: Environment): CreateBody {
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
