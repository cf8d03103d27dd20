import { userInfo } from 'node:os'

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

/** The environment every process starts with. */
export function createBaseEnv(
  own: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string>> {
  const env: Record<string, string> = {}
  for (const name of PASSED_ON) {
    const value = own[name]
    if (value !== undefined) env[name] = value
  }
  env['PATH'] ??= DEFAULT_PATH
  env['LANG'] ??= 'C.UTF-8'
  const user = userInfo()
  env['HOME'] ??= user.homedir
  env['USER'] ??= user.username
  env['LOGNAME'] ??= user.username
  env['SHELL'] ??= user.shell ?? '/bin/sh'
  return env
}
