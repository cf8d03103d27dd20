import type { Account } from './account.ts'

/** Variables of sandboxd's own environment that processes may see. Everything else stays out, secrets above all. */
const PASSED_ON = [
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
] as const

const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** Of these, the ones that describe the user. */
const OF_THE_USER = new Set<string>(['HOME', 'USER', 'LOGNAME', 'SHELL'])

/** The environment every process starts with. Another user's processes see nothing that describes this one. */
export function createBaseEnv(
  own: Readonly<Record<string, string | undefined>>,
  account: Account,
  isOtherUser = false,
): Readonly<Record<string, string>> {
  const env: Record<string, string> = {}
  for (const name of PASSED_ON) {
    const value = own[name]
    if (value !== undefined && !(isOtherUser && OF_THE_USER.has(name))) env[name] = value
  }
  env['PATH'] ??= DEFAULT_PATH
  env['LANG'] ??= 'C.UTF-8'
  env['HOME'] ??= account.home
  env['USER'] ??= account.name
  env['LOGNAME'] ??= account.name
  env['SHELL'] ??= account.shell
  return env
}
