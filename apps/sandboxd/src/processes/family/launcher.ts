type Environment = Readonly<Record<string, string>>

/** What is executed in place of a command, and with which variables. */
export interface Launch {
  readonly argv: readonly [string, ...string[]]
  readonly env: Environment
}

/** Puts words in front of a command that give up rights and then execute it. */
export type Launcher = (command: readonly string[], env: Environment) => Launch

/**
 * Variables that the C library obeys inside of any program, and not in one that has more rights than who has started it. What gives up
 * the rights is such a program, and does not look like one to every kernel.
 */
const OBEYED_BY_LIBRARIES =
  /^(?:LD_|GLIBC_|MALLOC_|MUSL_|RES_|RESOLV_|(?:GCONV_PATH|GETCONF_DIR|HOSTALIASES|LOCALDOMAIN|LOCPATH|NIS_PATH|NLSPATH|TMPDIR|TZDIR)$)/

/** A launcher of these words, which end where a command is expected. `envFile` is where `env` is. */
export function createLauncher(words: readonly [string, ...string[]], envFile: string): Launcher {
  return (command, env) => {
    const withheld = Object.entries(env).filter(([name]) => OBEYED_BY_LIBRARIES.test(name))
    if (withheld.length === 0) return { argv: [...words, ...command], env }
    const kept = Object.entries(env).filter(([name]) => !OBEYED_BY_LIBRARIES.test(name))
    const given = withheld.map(([name, value]) => `${name}=${value}`)
    return { argv: [...words, envFile, ...given, ...unmistakable(command)], env: Object.fromEntries(kept) }
  }
}

/** `env` takes everything with a sign of equality for a variable, so such a command goes behind another one. */
function unmistakable(command: readonly string[]): readonly string[] {
  return command[0]?.includes('=') === true ? ['/bin/sh', '-c', 'exec "$@"', 'sh', ...command] : command
}
