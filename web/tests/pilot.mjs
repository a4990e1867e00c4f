// An autopilot inside the page, which reads the state and presses keys. It does not run in the test, because the
// browser's debugger is slow on a busy machine.

/** Installs the autopilot in the page. It uses only `window.snowfight`. */
export function installPilot() {
  const KEYS = { north: "KeyW", west: "KeyA", south: "KeyS", east: "KeyD" };
  const STEP_MS = 16;
  /**
   * The time in milliseconds without movement after which the player counts as blocked. It then walks sideways, longer
   * each time.
   */
  const STUCK_MS = 200;
  const ASIDE_MS = 350;
  const down = new Set();
  let missed = [];

  const page = () => window.snowfight;
  const state = () => document.body.dataset.state;
  const isOwn = ({ kind, owner }) => kind === "player" && owner === page().player;
  const me = () => page().scene.find(isOwn);
  const other = () => page().scene.find((figure) => figure.kind === "player" && !isOwn(figure));
  const far = (a, b) => Math.hypot(a.x - b.x, a.y - b.y);
  const nearest = () => {
    const own = me();
    const whole = page().scene.filter(({ kind, durability }) => kind !== "player" && durability !== undefined);
    const there = whole.filter(({ id }) => !missed.includes(id));
    return own && there.sort((a, b) => far(a, own) - far(b, own))[0];
  };

  const press = (ways) => {
    for (const [way, code] of Object.entries(KEYS)) {
      if (ways.includes(way) !== down.has(way)) {
        dispatchEvent(new KeyboardEvent(ways.includes(way) ? "keydown" : "keyup", { code, cancelable: true }));
        down[ways.includes(way) ? "add" : "delete"](way);
      }
    }
  };
  const along = (distance, forth, back) => (distance > 0.1 ? [forth] : distance < -0.1 ? [back] : []);
  const towards = (own, goal) => [...along(goal.x - own.x, "east", "west"), ...along(goal.y - own.y, "north", "south")];
  const aside = (own, goal, tries) => {
    const first = tries % 2 === 0;
    const isWide = Math.abs(goal.x - own.x) > Math.abs(goal.y - own.y);
    return [isWide ? (first ? "north" : "south") : first ? "east" : "west"];
  };

  /** Walks until the distance is below `near`. Resolves with "there", "late", "over" (the game) or "gone" (the goal). */
  const walk = (what, near, limitMs) =>
    new Promise((resolve) => {
      const chosen = what === "other" ? undefined : nearest()?.id;
      const find = what === "other" ? other : () => page().scene.find(({ id, durability }) => id === chosen && durability !== undefined);
      const end = performance.now() + limitMs;
      let last = { x: NaN, y: NaN, at: 0 };
      let tries = 0;
      let asideUntil = 0;
      const finish = (outcome) => {
        clearInterval(timer);
        press([]);
        resolve(outcome);
      };
      const timer = setInterval(() => {
        const now = performance.now();
        const own = me();
        const goal = find();
        if (state() !== "playing" || own === undefined) {
          return finish("over");
        }
        if (goal === undefined) {
          return finish("gone");
        }
        if (far(own, goal) < near) {
          return finish("there");
        }
        if (now > end) {
          // Do not try an unreachable goal again.
          missed.push(goal.id);
          return finish("late");
        }
        if (!(far(own, last) < 0.05)) {
          last = { x: own.x, y: own.y, at: now };
        }
        if (now < asideUntil) {
          return undefined;
        }
        if (now - last.at > STUCK_MS) {
          asideUntil = now + ASIDE_MS * (1 + Math.floor(tries / 2));
          last = { ...last, at: asideUntil };
          press(aside(own, goal, tries++));
        } else {
          press(towards(own, goal));
        }
        return undefined;
      }, STEP_MS);
    });

  window.pilot = { state, me, other, walk, forget: () => (missed = []), entity: (id) => page().scene.find((figure) => figure.id === id) };
}
