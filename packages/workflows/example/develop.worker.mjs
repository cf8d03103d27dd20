// A Worker with a Cloudflare Workflow in which a coding agent implements an issue and another one reviews the change. Its
// configuration binds the class of the server's Worker:
// { "name": "CLAUDE_SANDBOX", "class_name": "ClaudeSandbox", "script_name": "sandwire" }
import { WorkflowEntrypoint } from 'cloudflare:workers'
import { createRuntime } from '@sandwire/workflows'

/** Implements an issue `{ repo, title, body }`. */
export class DevelopWorkflow extends WorkflowEntrypoint {
  async run(event, step) {
    const { repo, title, body } = event.payload
    const runtime = createRuntime(this.env.CLAUDE_SANDBOX, { repo })
    // A repeated step finds the run of its first attempt by the name.
    const change = await step.do('implement', { timeout: '2 hours' }, () =>
      runtime.claude.do({ task: title, context: body }, { name: `${event.instanceId}-implement` }),
    )
    const review = await step.do('review', { timeout: '1 hour' }, () =>
      runtime.claude.review({ diff: change.diff }, { name: `${event.instanceId}-review` }),
    )
    return { diff: change.diff, files: change.filesChanged, comments: review.comments }
  }
}

/** `POST /ID` starts a workflow, `GET /ID` shows it. */
// oxlint-disable-next-line import/no-default-export -- workerd requires one
export default {
  async fetch(request, env) {
    const id = new URL(request.url).pathname.slice(1)
    if (request.method === 'POST') {
      const instance = await env.DEVELOP.create({ id, params: await request.json() })
      return Response.json({ id: instance.id })
    }
    const instance = await env.DEVELOP.get(id)
    return Response.json(await instance.status())
  },
}
