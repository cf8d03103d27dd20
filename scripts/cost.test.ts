import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { replaceCosts } from './cost/document.ts'
import { ACTIVE_HOUR, capacityOf, costOfHour, IDLE_HOUR } from './cost/model.ts'
import { INSTANCE_TYPES } from './cost/prices.ts'
import { describeCosts } from './cost/table.ts'

const [lite, basic] = INSTANCE_TYPES as [(typeof INSTANCE_TYPES)[0], (typeof INSTANCE_TYPES)[0]]

describe('the cost model', () => {
  test('computes an idle hour of a basic instance', () => {
    const { container, control } = costOfHour(basic, IDLE_HOUR)
    // 1 GiB and 4 GB for 3600 s, and half a percent of a quarter of a processor.
    expect(container).toBeCloseTo(0.009 + 0.001_008 + 0.000_09, 9)
    // 480 rows and 244 calls; one object of 128 MB active for the hour, one for 122 times 0.2 s; 2 requests of 3 ms.
    expect(control).toBeCloseTo(0.000_48 + 0.000_036_6 + 0.005_76 + 0.000_039_04 + 0.000_000_72, 9)
  })

  test('charges for output and processor time only when used', () => {
    const more = costOfHour(lite, ACTIVE_HOUR).container - costOfHour(lite, IDLE_HOUR).container
    expect(more).toBeCloseTo(3600 * (1 / 16) * 0.245 * 0.00002 + 0.02 * 0.025, 9)
  })

  test('finds the first account limit that is reached', () => {
    expect(capacityOf(lite)).toEqual({ by: 'disk', sandboxes: 15_000 })
    expect(capacityOf(basic)).toEqual({ by: 'vCPU', sandboxes: 6_000 })
  })

  test('matches docs/cloudflare.md', () => {
    const document = readFileSync(path.resolve(import.meta.dir, '../docs/cloudflare.md'), 'utf8')
    expect(replaceCosts(document, describeCosts())).toBe(document)
  })
})
