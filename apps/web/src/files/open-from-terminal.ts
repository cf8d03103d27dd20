import type { FilePlace } from '@sandwire/react'
import { reveal } from '../layout/layout.ts'
import type { Workbench } from '../state/workbench.ts'

/** Where workspaces are in sandboxes, by what isolates them. */
const WORKSPACES = ['/workspace/', '/home/user/workspace/']

/** The path in the workspace that a program printed; undefined for one that is elsewhere. */
export function workspacePath(printed: string): string | undefined {
  const root = WORKSPACES.find((place) => printed.startsWith(place)) ?? ''
  const inside = printed.slice(root.length)
  if (inside.startsWith('/')) return undefined
  const parts: string[] = []
  for (const part of inside.split('/')) {
    if (part === '..' && parts.pop() === undefined) return undefined
    if (part !== '' && part !== '.' && part !== '..') parts.push(part)
  }
  return parts.length === 0 ? undefined : parts.join('/')
}

/** Opens what was clicked in a terminal. */
export function openFileFromTerminal(
  workbench: Workbench,
  sandbox: string,
  { path: printed, line }: FilePlace,
): void {
  const path = workspacePath(printed)
  if (path === undefined) {
    workbench.tell('info', 'This file is not in the workspace')
    return
  }
  const view = { kind: 'file', sandbox, path, ...(line === undefined ? {} : { line }) } as const
  workbench.changeLayout((layout) => reveal(layout, view, workbench.mint))
}
