import path from 'node:path'
import type { UserContext } from '../../processes/run-as.ts'
import { isExecutable } from '../../processes/resolve-command.ts'

/** Path in the npm package, which is installed where sandboxd runs from its source. */
async function findPackaged(): Promise<string | undefined> {
  try {
    return (await import('@vscode/ripgrep')).rgPath
  } catch {
    // A bundle or a compiled sandboxd has no packages.
    return undefined
  }
}

/**
 * Finds the ripgrep that ships with sandboxd and that the user may run: in its bundle, beside the compiled executable, or in
 * the npm package. Falls back to the name `rg`, which is looked up on PATH.
 */
export async function findRipgrep({
  programFolder,
  executable,
  user,
}: {
  readonly programFolder: string
  readonly executable: string
  readonly user: Pick<UserContext, 'asUser'>
}): Promise<string> {
  const packaged = await findPackaged()
  const shipped = [
    path.join(programFolder, 'bin/rg'),
    path.join(path.dirname(executable), 'rg'),
    ...(packaged === undefined ? [] : [packaged]),
  ]
  return user.asUser(() => shipped.find(isExecutable)) ?? 'rg'
}
