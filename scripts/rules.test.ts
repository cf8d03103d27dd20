import { describe, expect, test } from 'bun:test'

import { compareRules, findCitedRules, findDefinedRules } from './rules.ts'

describe('findDefinedRules', () => {
  test('finds bold ids at the start of list items', () => {
    const markdown = '# Rules\n- **[R1]** One.\n  * **[ABC123]** Two, see **[R1]**.\n'
    expect(findDefinedRules(markdown)).toEqual(['R1', 'ABC123'])
  })

  test('ignores mentions', () => {
    expect(findDefinedRules('See [R1].\n- As **[R2]** says.\n- [R3] plain\n1. **[R4]** numbered')).toEqual([])
  })
})

describe('findCitedRules', () => {
  test('reads titles in every kind of quote', () => {
    const source = 'test("[R1] a", f)\nit(\'[R2][R3] b\', f)\ndescribe(`[R4] c`, f)\n  test(\n  "[R5] d", f)'
    expect(findCitedRules(source)).toEqual(['R1', 'R2', 'R3', 'R4', 'R5'])
  })

  test('reads titles after modifiers', () => {
    const source =
      "test.each(rows())('[R1] a', f)\ntest.skipIf(!canRun())('[R2] b', f)\ntest.only('[R3] c', f)"
    expect(findCitedRules(source)).toEqual(['R1', 'R2', 'R3'])
  })

  test('ignores skipped and todo tests', () => {
    expect(findCitedRules("test.skip('[R1] a', f)\nit.todo('[R2] b')")).toEqual([])
  })

  test('ignores ids outside titles', () => {
    expect(findCitedRules("// [R1]\nconst a = '[R2]'\nlatest('[R3]')\ntest('plain', () => '[R4]')")).toEqual(
      [],
    )
  })

  test('reads past escaped quotes', () => {
    expect(findCitedRules(String.raw`test('it\'s [R1]', f)`)).toEqual(['R1'])
  })
})

describe('compareRules', () => {
  test('is empty when both sides agree', () => {
    expect(compareRules(['R1', 'R2'], ['R2', 'R1', 'R1'])).toEqual({
      untested: [],
      undefined: [],
      repeated: [],
    })
  })

  test('lists untested, undefined and repeated ids', () => {
    const report = compareRules(['R1', 'R2', 'R2'], ['R9', 'R1'])
    expect(report).toEqual({ untested: ['R2'], undefined: ['R9'], repeated: ['R2'] })
  })
})
