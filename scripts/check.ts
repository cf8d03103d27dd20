// Runs all static checks in parallel and prints the output of those that fail.

import path from 'node:path'

type Step = { readonly name: string; readonly argv: readonly string[] }
type Outcome = { readonly isOk: boolean; readonly output: string; readonly elapsedMs: number }

const root = path.dirname(import.meta.dir)
const bin = (name: string): string => path.join(root, 'node_modules', '.bin', name)
const script = (name: string): string[] => [process.execPath, path.join(import.meta.dir, name)]

const steps: readonly Step[] = [
  { name: 'types', argv: [bin('tsc'), '--noEmit', '--pretty', 'false'] },
  // The worker has its own globals; its tests run in Bun.
  { name: 'worker', argv: [bin('tsc'), '--noEmit', '--pretty', 'false', '-p', 'apps/control'] },
  { name: 'worker tests', argv: [bin('tsc'), '--noEmit', '--pretty', 'false', '-p', 'apps/control/test'] },
  {
    name: 'cloudflare',
    argv: [bin('tsc'), '--noEmit', '--pretty', 'false', '-p', 'deploy/cloudflare'],
  },
  { name: 'lint', argv: [bin('oxlint'), '--type-aware', '--deny-warnings'] },
  { name: 'format', argv: [bin('oxfmt'), '--check'] },
  { name: 'dead code', argv: [bin('knip'), '--no-progress', '--no-config-hints'] },
  { name: 'rules', argv: script('check-rules.ts') },
  { name: 'documents', argv: script('check-documents.ts') },
  { name: 'text', argv: script('check-text.ts') },
]

const readAll = async (stream: ReadableStream): Promise<string> => new Response(stream).text()

async function runStep(step: Step): Promise<Outcome> {
  const startedMs = performance.now()
  const child = Bun.spawn([...step.argv], { cwd: root, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const [stdout, stderr, status] = await Promise.all([
    readAll(child.stdout),
    readAll(child.stderr),
    child.exited,
  ])
  const output = [stdout, stderr]
    .map((text) => text.trim())
    .filter(Boolean)
    .join('\n')
  return { isOk: status === 0, output, elapsedMs: performance.now() - startedMs }
}

async function runAndReport(step: Step): Promise<boolean> {
  const outcome = await runStep(step)
  const verdict = outcome.isOk ? 'ok  ' : 'FAIL'
  console.log(`${verdict}  ${step.name.padEnd(10)} ${(outcome.elapsedMs / 1000).toFixed(1)} s`)
  if (!outcome.isOk) console.log(`${outcome.output.replace(/^/gm, '    ')}\n`)
  return outcome.isOk
}

const results = await Promise.all(steps.map(runAndReport))
const failed = results.filter((isOk) => !isOk).length
console.log(failed === 0 ? `All ${steps.length} checks passed` : `${failed} of ${steps.length} checks failed`)
process.exitCode = failed === 0 ? 0 : 1
