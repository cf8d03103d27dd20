/** Variables that describe a terminal. Programs do not run what they name. */
const TERMINAL_VARIABLE = /^(?:TERM|COLORTERM|LANG|LC_[A-Z_]+|TZ)$/

/** The first variable that needs the right to run any command; undefined when there is none. */
export function findRestrictedVariable(env: Readonly<Record<string, string>>): string | undefined {
  return Object.keys(env).find((name) => !TERMINAL_VARIABLE.test(name))
}
