// Computes what sandboxes on Cloudflare cost: `npm run cost`, or `npm run cost -- --write` to put it into docs/operations.md.

import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { replaceCosts } from './cost/document.ts'
import { describeCosts } from './cost/table.ts'

const document = path.resolve(import.meta.dir, '../docs/operations.md')

if (process.argv.includes('--write'))
  writeFileSync(document, replaceCosts(readFileSync(document, 'utf8'), describeCosts()))
else console.log(describeCosts())
