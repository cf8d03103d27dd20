// Computes the cost of sandboxes on Cloudflare: `npm run cost`, or `npm run cost -- --write` to update docs/cloudflare.md.

import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { replaceCosts } from './cost/document.ts'
import { describeCosts } from './cost/table.ts'
import { readOptions } from './read-options.ts'

const document = path.resolve(import.meta.dir, '../docs/cloudflare.md')

const { write } = readOptions({ write: { type: 'boolean', default: false } }, 'npm run cost -- [--write]')

if (write) writeFileSync(document, replaceCosts(readFileSync(document, 'utf8'), describeCosts()))
else console.log(describeCosts())
