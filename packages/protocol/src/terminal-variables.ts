/** Variables that describe a terminal and can start nothing. */
const TERMINAL_VARIABLE = /^(?:TERM|COLORTERM|LANG|LC_[A-Z_]+|TZ)$/

/** The first variable that only who may run any command may set, since programs run what such variables name; undefined: there is none. */
export function findRestrictedVariable(env: Readonly<Record<string, string>>): string | undefined {
  return Object.keys(env).find((name) => !TERMINAL_VARIABLE.test(name))
}
