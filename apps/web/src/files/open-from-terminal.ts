import type { FileLocation } from '@sandwire/react'
import { ApiError } from '../api/request.ts'
import { findFiles } from '../api/search.ts'
import { statFile } from '../api/workspace.ts'
import { reveal } from '../layout/layout.ts'
import { messageOf, type Workbench } from '../state/workbench.ts'
import { fileTexts } from '../texts/files.ts'

/** Where the workspace is in every isolated sandbox. */
const WORKSPACE = '/workspace'
/** Limit for finding a clicked file by name. */
const FIND_MS = 10_000

/** Several files that a clicked path may mean. */
export interface FileChoice {
  readonly paths: readonly string[]
  readonly open: (path: string) => void
}

function partsOf(path: string): readonly string[] {
  return path.split('/').filter((part) => part !== '' && part !== '.')
}

/** The workspace path of a printed path; undefined when it is outside. */
export function workspacePath(printed: string): string | undefined {
  const isBelow = printed === WORKSPACE || printed.startsWith(`${WORKSPACE}/`)
  const inside = isBelow ? printed.slice(WORKSPACE.length + 1) : printed
  if (inside.startsWith('/')) return undefined
  const parts: string[] = []
  for (const part of partsOf(inside)) {
    if (part !== '..') parts.push(part)
    else if (parts.pop() === undefined) return undefined
  }
  return parts.length === 0 ? undefined : parts.join('/')
}

/** Candidate workspace paths, the most likely first: relative to the shell's directory, then to the root. */
export function candidatesOf({ path, folder }: FileLocation): readonly string[] {
  const printed = path.startsWith('/') || folder === undefined ? [path] : [`${folder}/${path}`, path]
  const inside = printed.map(workspacePath).filter((candidate) => candidate !== undefined)
  return [...new Set(inside)]
}

/** The found paths that end with the printed one. */
export function endingAs(printed: string, found: readonly string[]): readonly string[] {
  const end = partsOf(printed)
    .filter((part) => part !== '..')
    .join('/')
  return end === '' ? [] : found.filter((path) => path === end || path.endsWith(`/${end}`))
}

async function isFile(sandbox: string, path: string): Promise<boolean> {
  try {
    const { kind, target } = await statFile(sandbox, path)
    return (target ?? kind) !== 'folder'
  } catch (caught) {
    // Not found, or a parent is not a folder.
    if (caught instanceof ApiError && caught.status >= 400 && caught.status < 500) return false
    throw caught
  }
}

async function findByName(sandbox: string, printed: string): Promise<readonly string[]> {
  const name = partsOf(printed).at(-1) ?? printed
  const { results } = await findFiles(sandbox, name, AbortSignal.timeout(FIND_MS))
  const files = results.filter(({ kind }) => kind !== 'folder').map(({ path }) => path)
  return endingAs(printed, files)
}

async function findPaths(sandbox: string, location: FileLocation): Promise<readonly string[]> {
  for (const candidate of candidatesOf(location)) if (await isFile(sandbox, candidate)) return [candidate]
  return location.path.startsWith('/') ? [] : findByName(sandbox, location.path)
}

/** Opens a path clicked in a terminal; returns the candidates when there are several. */
export async function openFileFromTerminal(
  workbench: Workbench,
  sandbox: string,
  location: FileLocation,
): Promise<FileChoice | undefined> {
  const { path: printed, line, column } = location
  const open = (path: string): void => {
    const at = { ...(line === undefined ? {} : { line }), ...(column === undefined ? {} : { column }) }
    const view = {
      kind: 'file',
      sandbox,
      path,
      ...at,
    } as const
    workbench.changeLayout((layout) => reveal(layout, view, workbench.mint))
  }
  try {
    const paths = await findPaths(sandbox, location)
    const [only] = paths
    if (paths.length > 1) return { paths, open }
    if (only !== undefined) open(only)
    else if (printed.startsWith('/') && workspacePath(printed) === undefined)
      workbench.notify('info', fileTexts.fromTerminal.outside)
    else workbench.notify('info', fileTexts.fromTerminal.notFound(printed))
  } catch (caught) {
    workbench.notify('error', fileTexts.fromTerminal.cannotOpen(printed, messageOf(caught)))
  }
  return undefined
}
