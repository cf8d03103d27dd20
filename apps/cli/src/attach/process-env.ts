import { checkEnv } from '../options/env-limits.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** What a program needs to know about the terminal it writes to. */
const TERMINAL_VARIABLES = /^(TERM|COLORTERM|LANG|LC_[A-Z]+)$/

/** The environment to send: the terminal's in PTY mode, then what was asked for. Unset variables are left out. Throws `Wrong`. */
export function collectEnv(
  own: Environment,
  asked: readonly (readonly [name: string, value: string | undefined])[],
  isPty: boolean,
): Record<string, string> {
  const env: Record<string, string> = {}
  for (const [name, value] of Object.entries(own)) {
    if (isPty && value !== undefined && TERMINAL_VARIABLES.test(name)) env[name] = value
  }
  for (const [name, value] of asked) {
    const used = value ?? own[name]
    if (used !== undefined) env[name] = used
  }
  checkEnv(env)
  return env
}
