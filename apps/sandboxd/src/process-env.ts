import { lstatSync, readFileSync, unlinkSync } from 'node:fs'
import { schema } from '@sandwire/protocol'

/** Variables of sandboxd's own environment that processes inherit. All others stay out, secrets above all. */
const INHERITED = [
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'SHELL',
  'LANG',
  'LC_ALL',
  'LC_CTYPE',
  'TZ',
  'TMPDIR',
  'TMUX_TMPDIR',
] as const

const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** Inherited variables that describe the user. */
const USER_VARIABLES = new Set<string>(['HOME', 'USER', 'LOGNAME', 'SHELL'])

/** A user as `/etc/passwd` describes it. */
export interface Account {
  readonly name: string
  readonly home: string
  readonly shell: string
}

/** The environment every process starts with. Processes of another user inherit nothing that describes this one. */
export function createBaseEnv(
  own: Readonly<Record<string, string | undefined>>,
  account: Account,
  isOtherUser = false,
): Readonly<Record<string, string>> {
  const env: Record<string, string> = {}
  for (const name of INHERITED) {
    const value = own[name]
    if (value !== undefined && !(isOtherUser && USER_VARIABLES.has(name))) env[name] = value
  }
  env['PATH'] ??= DEFAULT_PATH
  env['LANG'] ??= 'C.UTF-8'
  env['HOME'] ??= account.home
  env['USER'] ??= account.name
  env['LOGNAME'] ??= account.name
  env['SHELL'] ??= account.shell
  return env
}

/** Reads a user from `/etc/passwd`, because Bun's `userInfo` takes names from the environment (1.4). */
export function readAccount(uid: number): Account {
  const fallback: Account = { name: 'user', home: '/', shell: '/bin/sh' }
  try {
    return findAccount(readFileSync('/etc/passwd', 'utf8'), uid) ?? fallback
  } catch {
    // A container may have no such file.
    return fallback
  }
}

/** Finds a user by number in the content of a passwd file. */
export function findAccount(passwd: string, uid: number): Account | undefined {
  for (const line of passwd.split('\n')) {
    const [name, , id, , , home, shell] = line.split(':')
    if (name === undefined || id !== String(uid)) continue
    return {
      name,
      home: home === undefined || home === '' ? '/' : home,
      shell: shell === undefined || shell === '' ? '/bin/sh' : shell,
    }
  }
  return undefined
}

/** Variables for processes, or why the file cannot be used. */
export type EnvFile =
  | { readonly isOk: true; readonly env: Readonly<Record<string, string>> }
  | { readonly isOk: false; readonly message: string }

const MAX_ENTRIES = 256
const MAX_VALUE_CHARS = 32 * 1024
const envSchema = schema.dictionary(
  MAX_ENTRIES,
  /^[A-Za-z_][A-Za-z0-9_]{0,255}$/,
  schema.text(MAX_VALUE_CHARS, /^[^\0]*$/),
)

/** Reads variables from a JSON file and removes the file, which may hold secrets. */
export function takeEnvFile(file: string): EnvFile {
  const invalid = (problem: string): EnvFile => ({
    isOk: false,
    message: `cannot read the environment from "${file}": ${problem}`,
  })
  try {
    if (!lstatSync(file).isFile()) return invalid('not a regular file')
    const env = envSchema.decode(JSON.parse(readFileSync(file, 'utf8')))
    if (env === undefined) return invalid('expected an object of strings with valid variable names')
    unlinkSync(file)
    return { isOk: true, env: { ...env } }
  } catch (error) {
    // The parser's message would quote the file.
    return invalid(error instanceof Error && 'code' in error ? String(error.code) : 'not JSON')
  }
}
