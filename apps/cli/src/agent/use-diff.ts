import { writeFileSync } from 'node:fs'
import type { CommandContext } from '../commands/command.ts'
import { HintedError } from '../errors/errors.ts'
import { printable } from '../text/printable.ts'
import { summarize, type WorkTree } from './work-tree.ts'

/** What to do with the changes of a run. */
export interface DiffOptions {
  /** File to write them to; `-` is stdout. */
  readonly patch: string | undefined
  readonly apply: 'ask' | 'yes' | 'no'
}

/** The work tree as it was sent to a run. */
export interface SentTree {
  readonly run: string
  readonly tree: WorkTree
  readonly hash: string
}

/** True when the patch goes to stdout: on request, or when stdout is neither a terminal nor used for events. */
function printsPatch({ io, isJson }: CommandContext, { patch, apply }: DiffOptions): boolean {
  if (isJson) return false
  return patch === '-' || (patch === undefined && io.columns === undefined && apply === 'ask')
}

/** Writes, prints or applies the changes, as the options say. */
export async function useDiff(
  context: CommandContext,
  patch: Uint8Array,
  options: DiffOptions,
  sent: SentTree | undefined,
): Promise<void> {
  const { io, isJson } = context
  const { patch: file } = options
  if (file !== undefined && file !== '-') {
    writeFileSync(file, patch)
    io.info(`wrote the changes to ${printable(file)}`)
  }
  if (patch.length === 0) return io.info('no changes')
  if (!isJson) io.write(summarize(patch, sent?.tree.root ?? '.'))
  if (printsPatch(context, options)) io.print(patch)
  else if (sent !== undefined && (await mayApply(context, options.apply))) applyTo(sent, patch, context)
}

async function mayApply({ io, isJson }: CommandContext, apply: DiffOptions['apply']): Promise<boolean> {
  if (apply !== 'ask') return apply === 'yes'
  return !isJson && (await io.confirm?.('Apply these changes to the work tree?')) === true
}

function applyTo({ run, tree, hash }: SentTree, patch: Uint8Array, { io, urlOption }: CommandContext): void {
  if (tree.hash() !== hash)
    throw new HintedError(
      'conflict',
      'Cannot apply the changes: the work tree has changed since it was sent',
      `apply them by hand: sbx-stdio run diff ${run}${urlOption} | git apply --3way`,
    )
  tree.apply(patch)
  io.info('applied the changes')
}
