import { lstatSync, readlinkSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { temporaryName } from '../data/private-file.ts'
import { ensureFolder } from '../isolation/sandbox-folders.ts'

/**
 * Folder of agents' programs. Sandboxes have it read-only as `/opt/agents`: `NAME/VERSION/FILE`, and `NAME/FILE`, a symbolic link to
 * the version that runs use.
 */
export function agentsFolder(dataFolder: string): string {
  return path.join(dataFolder, 'agents')
}

/** Creates the folder; users of sandboxes must be able to read it. */
export function openAgentsFolder(dataFolder: string): void {
  ensureFolder(agentsFolder(dataFolder), 0o755)
}

/** A program in the folder. */
export interface ProgramPath {
  readonly name: string
  readonly version: string
  readonly file: string
}

export function versionFolder(folder: string, { name, version }: Omit<ProgramPath, 'file'>): string {
  return path.join(folder, name, version)
}

/** Lets runs use a version that is installed. */
export function useVersion(folder: string, { name, version, file }: ProgramPath): void {
  const link = path.join(folder, name, file)
  const temporary = temporaryName(link)
  rmSync(temporary, { force: true })
  symlinkSync(path.join(version, file), temporary)
  renameSync(temporary, link)
}

/** The version that runs use; undefined when none is installed. */
export function usedVersion(
  folder: string,
  { name, file }: Omit<ProgramPath, 'version'>,
): string | undefined {
  try {
    const version = path.dirname(readlinkSync(path.join(folder, name, file)))
    return lstatSync(path.join(folder, name, version, file)).isFile() ? version : undefined
  } catch {
    // Not installed.
    return undefined
  }
}
