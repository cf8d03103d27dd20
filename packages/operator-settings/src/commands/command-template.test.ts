import { describe, expect, test } from 'bun:test'
import { findPlacementProblem } from './command-template.ts'

describe('(threat T9) findPlacementProblem', () => {
  test.each([
    [['{p}', 'x']],
    [['sh', '-c', 'cat {p}']],
    [['sh', '-c', '{p}']],
    [['/bin/bash', '-lc', '{p}']],
    [['bash', '-c', 'cat', '{p}']],
    [['bash', '-o', 'pipefail', '-c', '{p}']],
    [['bash', '-c', '-o', 'pipefail', '{p}']],
    [['bash', '-c', '-e', '--', '{p}']],
    [['bash', '--rcfile', '{p}', '-i']],
    [['bash', '--init-file={p}', '-i']],
    [['bash', '-{p}']],
    [['bash', '{p}']],
    [['env', 'A=1', 'zsh', '-c', '{p}']],
    [['timeout', '5', 'bash', '-c', '{p}']],
    [['busybox', 'sh', '-c', '{p}']],
    [['busybox', '{p}']],
    [['busybox', 'sh', '{p}']],
    [['fish', '--command={p}']],
    [['python3.12', '-c', '{p}']],
    [['python3', '-Ic{p}']],
    [['perl', '-ne', '{p}']],
    [['node', '--eval', '{p}']],
    [['node', '--eval={p}']],
    [['su', 'user', '-c', '{p}']],
    [['psql', '-c', '{p}']],
    [['sed', '-n', '-e', '{p}', 'file']],
    [['find', '.', '-exec', '{p}', ';']],
    [['git', '-c', 'core.pager={p}', 'log']],
    [['awk', '{ print {p} }', 'file']],
    [['rsync', '-e', '{p}', 'a', 'b']],
  ])('refuses a parameter that could be run: %j', (argv) => {
    expect(findPlacementProblem(argv)).toBeDefined()
  })

  test.each([
    [['tail', '-n', '{p}', '--', 'logs/{q}.log']],
    [['grep', '-c', '--', '{p}', 'file']],
    [['bash', '-c', 'grep -- "$1" log', 'bash', '{p}']],
    [['bash', '-ec', 'run "$1" "$2"', 'bash', '{p}', '{q}']],
    [['bash', 'run.sh', '{p}']],
    [['python3', 'run.py', '--name={p}']],
    [['timeout', '5', 'bash', 'run.sh', '{p}']],
    [['find', '.', '-name', '{p}']],
    [['git', 'log', '--author={p}', '-n', '{q}']],
    [['tar', '-xzf', '{p}', '-C', 'out']],
    [['npm', 'run', '{p}']],
    [['rsync', '-a', '-e', 'ssh', '{p}', 'b']],
  ])('accepts a parameter that is a value: %j', (argv) => {
    expect(findPlacementProblem(argv)).toBeUndefined()
  })
})
