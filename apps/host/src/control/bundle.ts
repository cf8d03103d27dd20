import { createHash } from 'node:crypto'
import { readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { SandwireError, schema } from '@sandwire/protocol'
import { writePrivateFile } from '../data/private-file.ts'

/** Inputs of the last bundle. */
const recordSchema = schema.record({
  bundle: schema.text(64),
  /** Hash of every input file, by path. */
  inputs: schema.dictionary(100_000, /^/, schema.text(64)),
})
type BundleRecord = schema.Decoded<typeof recordSchema>

function hash(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex')
}

function hashFile(file: string): string | undefined {
  try {
    return hash(readFileSync(file))
  } catch {
    // Removed: the bundle is stale.
    return undefined
  }
}

/** The cached bundle, unless an input has changed. */
function readFresh(bundleFile: string, recordFile: string): string | undefined {
  try {
    const record = recordSchema.decode(JSON.parse(readFileSync(recordFile, 'utf8')))
    const bundle = readFileSync(bundleFile, 'utf8')
    if (record === undefined || hash(bundle) !== record.bundle) return undefined
    const isStale = Object.entries(record.inputs).some(([file, wanted]) => hashFile(file) !== wanted)
    return isStale ? undefined : bundle
  } catch {
    // Missing or incomplete.
    return undefined
  }
}

async function build(entry: string): Promise<{ text: string; inputs: string[] }> {
  const result = await Bun.build({
    entrypoints: [entry],
    target: 'browser',
    format: 'esm',
    conditions: ['workerd', 'worker'],
    external: ['cloudflare:*', 'node:*'],
    minify: { syntax: true, whitespace: true },
    metafile: true,
    throw: false,
  })
  const [code] = result.outputs
  if (!result.success || code === undefined)
    throw new SandwireError('internal', `Cannot build control: ${result.logs[0]?.message ?? 'no output'}`)
  // Bun's input paths are relative to the current folder.
  const inputs = Object.keys(result.metafile?.inputs ?? {}).map((file) => path.resolve(file))
  return { text: await code.text(), inputs }
}

/** Control's Worker as one module, rebuilt when an input has changed. */
export async function bundleControl(entry: string, cache: string): Promise<string> {
  const bundleFile = path.join(cache, 'control.mjs')
  const recordFile = path.join(cache, 'control.json')
  const kept = readFresh(bundleFile, recordFile)
  if (kept !== undefined) return kept
  rmSync(recordFile, { force: true })
  const { text, inputs } = await build(entry)
  const record: BundleRecord = {
    bundle: hash(text),
    inputs: Object.fromEntries(inputs.map((file) => [file, hashFile(file) ?? ''])),
  }
  writePrivateFile(bundleFile, text)
  writePrivateFile(recordFile, JSON.stringify(record))
  return text
}
