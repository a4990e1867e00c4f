/** The same for Node. */

import "./platform.js";

export * from "../game-protocol.js";
