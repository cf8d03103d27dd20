export type Environment = Readonly<Record<string, string | undefined>>

/** An empty variable counts as absent, as shells make them so. */
export function read(env: Environment, name: string): string | undefined {
  const text = env[name]
  return text === undefined || text === '' ? undefined : text
}
