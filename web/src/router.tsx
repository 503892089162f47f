import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from '@tanstack/react-router'
import { Lost, Trouble } from './shell/Trouble'
import { Shell } from './shell/Shell'

// Every page except the chat is loaded on demand.
const root = createRootRoute({ component: Shell, errorComponent: Trouble, notFoundComponent: Lost })

const home = createRoute({
  getParentRoute: () => root,
  path: '/',
  component: lazyRouteComponent(() => import('./chat/view/ChatPage'), 'ChatPage'),
})
const chat = createRoute({
  getParentRoute: () => root,
  path: '/chat/$session',
  component: lazyRouteComponent(() => import('./chat/view/ChatPage'), 'ChatPage'),
})
const agents = createRoute({
  getParentRoute: () => root,
  path: '/agents',
  component: lazyRouteComponent(() => import('./agents/AgentsPage'), 'AgentsPage'),
})
const agent = createRoute({
  getParentRoute: () => root,
  path: '/agents/$id',
  component: lazyRouteComponent(() => import('./agents/AgentPage'), 'AgentPage'),
})
const approvals = createRoute({
  getParentRoute: () => root,
  path: '/approvals',
  component: lazyRouteComponent(() => import('./approvals/ApprovalsPage'), 'ApprovalsPage'),
})
const runs = createRoute({
  getParentRoute: () => root,
  path: '/runs',
  component: lazyRouteComponent(() => import('./runs/RunsPage'), 'RunsPage'),
})
const run = createRoute({
  getParentRoute: () => root,
  path: '/runs/$id',
  component: lazyRouteComponent(() => import('./runs/RunPage'), 'RunPage'),
})
const compare = createRoute({
  getParentRoute: () => root,
  path: '/runs/compare',
  component: lazyRouteComponent(() => import('./runs/ComparePage'), 'ComparePage'),
})
const files = createRoute({
  getParentRoute: () => root,
  path: '/files',
  component: lazyRouteComponent(() => import('./files/FilesPage'), 'FilesPage'),
})
const settings = createRoute({
  getParentRoute: () => root,
  path: '/settings',
  component: lazyRouteComponent(() => import('./settings/SettingsPage'), 'SettingsPage'),
})

const tree = root.addChildren([home, chat, agents, agent, approvals, runs, run, compare, files, settings])

export function makeRouter() {
  return createRouter({
    routeTree: tree,
    defaultPreload: 'intent',
    defaultErrorComponent: Trouble,
    scrollRestoration: true,
  })
}

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof makeRouter>
  }
}
