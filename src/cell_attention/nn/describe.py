"""A network in words: one line per step, in the order in which the data flow, with parameters."""

from cell_attention.nn.config import NetworkConfig


def described(
    config: NetworkConfig, sizes: tuple[int, int, int], parameters: dict[str, list[int]]
) -> str:
    """Describe a network.

    sizes: node features, edge features, outputs. parameters: counts of every part, one per layer.
    """
    if config.design == "ranks":
        return _on_every_rank(config, sizes, parameters)
    _, edge_features, outputs = sizes
    heads = 1 if config.lift == "none" else config.lift_heads
    widths = (heads + edge_features, *config.widths)
    total = sum(sum(counts) for counts in parameters.values())
    lines = [_lift(config, sizes, parameters["lift"][0])]
    lines.append(_line("norm", f"{config.norm}{_dropped(config)}", parameters["norms"][0]))
    last = len(config.hidden) - 1
    for layer, (size, count) in enumerate(zip(config.hidden, config.heads, strict=True)):
        text = (
            f"{widths[layer]} → {count} × {size}, {config.join}: {widths[layer + 1]}; "
            f"{config.score} scores with {config.attention_activation}, "
            f"attention {config.attention}, {config.aggregate}"
        )
        lines.append(_line(f"attend {layer + 1}", text, parameters["attention"][layer]))
        after = "" if layer == last else _dropped(config)
        pools = parameters["pool"][layer] > 0
        text = f"{config.activation}, {config.norm}{'' if pools else after}"
        lines.append(_line("norm", text, parameters["norms"][layer + 1]))
        if pools:
            text = f"the best {config.ratio:g} of the edges by {config.pool_activation}{after}"
            lines.append(_line("pool", text, parameters["pool"][layer]))
    lines.append(_readout(config, parameters.get("node_sum", [0])[0]))
    hidden = f"{config.activation}{_dropped(config)}"
    text = f"{config.readout_width} → {config.head_hidden} → {outputs}, {hidden}"
    lines.append(_line("head", text, sum(parameters["head"])))
    return "\n".join([f"CellAttentionNetwork({total:,} parameters", *lines, ")"])


def _on_every_rank(
    config: NetworkConfig, sizes: tuple[int, int, int], parameters: dict[str, list[int]]
) -> str:
    ranks = [("nodes", "edges", "polygons")[rank] for rank in config.ranks]
    given = f"{sizes[0]} node features" + (f", {sizes[1]} edge features" if sizes[1] else "")
    text = f"{given} → {config.widths[0]} on {', '.join(ranks)}"
    lifted = f"polygons of up to {config.max_polygon} edges; {text}"
    lines = [_line("start", lifted, sum(parameters["start"]))]
    for layer, (size, count) in enumerate(zip(config.hidden, config.heads, strict=True)):
        shared = "" if config.shared_cell else " without the shared cell"
        voices = "" if config.voices == "one" else ", a voice for each"
        twice = ", twice" if config.update == "mlp" else ""
        text = (
            f"{count} × {size}: {config.widths[layer]}; {config.weights}{shared} over "
            f"{', '.join(config.neighbourhoods)}{voices}; {config.norm}, {config.activation}{twice}"
            f"{_dropped(config)}"
        )
        lines.append(_line(f"attend {layer + 1}", text, parameters["layers"][layer]))
        if parameters["pool"][layer]:
            text = f"the best {config.ratio:g} of the edges by {config.pool_activation}"
            lines.append(_line("pool", text, parameters["pool"][layer]))
    which = "the last layer" if config.pooling == "global" else "every layer"
    lines.append(_line("read out", f"{config.readout} over {', '.join(ranks)} of {which}", 0))
    dropped = f", dropout {config.head_dropout:g}" if config.head_dropout else ""
    hidden = f"{config.norm}, {config.activation}{dropped}"
    text = f"{config.readout_width} → {config.head_hidden} → {sizes[2]}, {hidden}"
    lines.append(_line("head", text, sum(parameters["head"]) + sum(parameters["head_norm"])))
    if config.counts:
        text = f"surroundings of nodes, up to {config.counts} steps; {hidden}"
        lines.append(_line("count", f"{text} → {sizes[2]}", sum(parameters["counts"])))
    if "descriptors" in parameters:
        text = f"complexes as wholes → {config.head_hidden} → {config.head_hidden}; {hidden}"
        lines.append(_line("describe", f"{text} → {sizes[2]}", sum(parameters["descriptors"])))
    total = sum(sum(counts) for counts in parameters.values())
    return "\n".join([f"CellAttentionNetwork({total:,} parameters", *lines, ")"])


def _lift(config: NetworkConfig, sizes: tuple[int, int, int], count: int) -> str:
    node_features, edge_features, _ = sizes
    if config.lift == "none":
        text = f"none, ⟨x_i, x_j⟩ of {node_features} node features"
    else:
        dropped = f", dropout {config.lift_dropout:g}" if config.lift_dropout else ""
        text = (
            f"{config.lift}, {node_features} node features → {config.lift_heads} heads, "
            f"{config.lift_activation}{dropped}"
        )
    joined = f"; {edge_features} edge features join" if edge_features else ""
    return _line("lift", f"polygons of up to {config.max_polygon} edges; {text}{joined}", count)


def _readout(config: NetworkConfig, count: int) -> str:
    which = "of every layer" if config.pooling == "hierarchical" else "of the last layer"
    joined = f", joined by {config.layer_readout}" if config.pooling == "hierarchical" else ""
    nodes = f", {config.node_readout} from the nodes" if config.node_readout else ""
    return _line("read out", f"{config.readout} over the edges {which}{joined}{nodes}", count)


def _dropped(config: NetworkConfig) -> str:
    return f", dropout {config.dropout:g}" if config.dropout else ""


def _line(name: str, text: str, count: int) -> str:
    return f"  {name:9} {text}" + (f"  [{count:,}]" if count else "")
