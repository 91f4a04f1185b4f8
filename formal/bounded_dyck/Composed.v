(** Corollary 1: both layers together, with uniform attention, from brackets to the distribution of the next one. *)

Require Import Reals Lra Lia List Arith.
From Formal.common Require Import Sums.
From Formal.bounded_dyck Require Import Pairs Words Sufficiency.
Import ListNotations.
Open Scope R_scope.

(** The first layer's values: START has the vector (1, 0), an open bracket (0, 1), a closed one (0, -1). *)
Definition signed (b : bracket) : R := match b with Open _ => 1 | Close _ => -1 end.
Fixpoint total (w : list bracket) : R := match w with [] => 0 | b :: rest => signed b + total rest end.

(** What uniform attention over START and a prefix gathers of them, and its second entry behind LN. *)
Definition mixture (w : list bracket) (e : nat) : R := (kron e 0 + kron e 1 * total w) / INR (S (length w)).
Definition sine (w : list bracket) : R := LN 2 (mixture w) 1.

(** The first network: two units a level tell whether the depth is m or more, then a unit a state. *)
Definition at_depth (d : nat) : R := INR d / sqrt (1 + INR d * INR d).
Definition reaches (m : nat) (x : R) : R :=
  let y := 3 * (x - at_depth (pred m)) / (at_depth m - at_depth (pred m)) in relu (y - 1) - relu (y - 2).
Definition same (b b' : bracket) : bool :=
  match b, b' with Open i, Open j => i =? j | Close i, Close j => i =? j | _, _ => false end.
Definition token (w : list bracket) (b : bracket) : R :=
  match rev w with [] => 0 | b' :: _ => if same b b' then 1 else 0 end.
Definition one_hot (D : nat) (w : list bracket) (t : state) : R :=
  match t with
  | Start => match w with [] => 1 | _ => 0 end
  | At b d => relu (token w b + (if d =? 0 then 1 else reaches d (sine w))
                    - (if d <? D then reaches (S d) (sine w) else 0) - 1)
  end.

(** The second layer: a matrix of values acts on the units of all states, and uniform attention takes the mean over all
    positions, START's first. *)
Definition valued (k D : nat) (V : state -> nat -> R) (x : state -> R) (e : nat) : R :=
  x Start * V Start e + Sum k (fun i => Sum (S D) (fun d =>
    x (At (Open i) d) * V (At (Open i) d) e + x (At (Close i) d) * V (At (Close i) d) e)).
Definition second (k D : nat) (V : state -> nat -> R) (w : list bracket) (e : nat) : R :=
  Sum (S (length w)) (fun n => valued k D V (one_hot D (firstn n w)) e) / INR (S (length w)).

(** Both layers and the second network. *)
Definition uniform_transformer (k D : nat) (p : R) (w : list bracket) (o : bracket) : R :=
  head k D p (smallest k D 0 0) (LN (k * D + 1) (second k D (values k D (fun _ _ => 0)) w)) o.

Lemma at_depth_square d : at_depth d = sqrt (1 - / (1 + INR d * INR d)).
Proof.
  unfold at_depth. pose proof (pos_INR d). assert (P : 0 < 1 + INR d * INR d) by nra.
  rewrite <- (sqrt_square (INR d)) at 1 by assumption. rewrite <- sqrt_div by nra. f_equal. field. lra.
Qed.

Lemma at_depth_grows d m : (d < m)%nat -> at_depth d < at_depth m.
Proof.
  intro L. rewrite !at_depth_square. apply lt_INR in L. pose proof (pos_INR d). apply sqrt_lt_1_alt.
  assert (P : 0 < 1 + INR d * INR d) by nra. assert (Q : 1 + INR d * INR d < 1 + INR m * INR m) by nra.
  split.
  - assert (/ (1 + INR d * INR d) <= 1); [|lra]. rewrite <- Rinv_1. apply Rinv_le_contravar; nra.
  - apply Ropp_lt_contravar in Q. assert (/ (1 + INR m * INR m) < / (1 + INR d * INR d)); [|lra].
    apply Rinv_lt_contravar; nra.
Qed.

Lemma at_depth_mono d m : (d <= m)%nat -> at_depth d <= at_depth m.
Proof. intro L. destruct (Nat.eq_dec d m) as [->|N]; [lra|]. left. apply at_depth_grows. lia. Qed.

Lemma reaches_at m d : (1 <= m)%nat -> reaches m (at_depth d) = if m <=? d then 1 else 0.
Proof.
  intro Pm. unfold reaches, relu. set (g := at_depth m - at_depth (pred m)).
  assert (Pg : 0 < g) by (pose proof (at_depth_grows (pred m) m ltac:(lia)); unfold g; lra).
  set (y := 3 * (at_depth d - at_depth (pred m)) / g).
  assert (E : y * g = 3 * (at_depth d - at_depth (pred m))) by (unfold y; field; lra).
  destruct (Nat.leb_spec m d) as [L|L].
  - pose proof (at_depth_mono m d L). assert (3 <= y); [|rewrite !Rmax_right by lra; ring].
    apply (Rmult_le_reg_r g); [exact Pg|]. rewrite E. unfold g. lra.
  - pose proof (at_depth_mono d (pred m) ltac:(lia)). assert (y <= 0); [|rewrite !Rmax_left by lra; ring].
    apply (Rmult_le_reg_r g); [exact Pg|]. rewrite E. lra.
Qed.

Lemma total_app w v : total (w ++ v) = total w + total v.
Proof. induction w; simpl; [ring|]. rewrite IHw. ring. Qed.

Lemma total_depth k D s w s' : run k D s w = Some s' -> INR (length s) + total w = INR (depth (length s) w).
Proof.
  revert s. induction w as [|[i|i] w IH]; intros s H; cbn [run] in H.
  - unfold depth. simpl. ring.
  - destruct (andb (i <? k) (length s <? D)); [|discriminate]. apply IH in H. unfold depth in *. cbn [fold_left behind].
    cbn [length] in H. rewrite <- H, S_INR. simpl. ring.
  - destruct s as [|j s]; [discriminate|]. destruct (i =? j); [|discriminate]. apply IH in H. unfold depth in *.
    cbn [fold_left behind length pred]. rewrite <- H, S_INR. simpl. ring.
Qed.

Lemma sine_depth k D w s : run k D [] w = Some s -> sine w = at_depth (depth 0 w).
Proof.
  intro H. pose proof (total_depth k D [] w s H) as T. simpl in T. rewrite Rplus_0_l in T.
  unfold sine. set (d := INR (depth 0 w)) in *. set (v := fun e => kron e 0 + kron e 1 * d).
  assert (Pn : 0 < / INR (S (length w))) by (apply Rinv_0_lt_compat, lt_0_INR; lia).
  assert (E : mixture w = fun e => / INR (S (length w)) * v e).
  { apply FunctionalExtensionality.functional_extensionality. intro e. unfold mixture, v. rewrite T. unfold Rdiv. ring. }
  assert (N : norm 2 v = sqrt (1 + d * d)).
  { unfold norm, dot, v. simpl Sum. unfold kron. simpl. f_equal. ring. }
  rewrite E, LN_scaled; [|exact Pn|rewrite N; apply sqrt_lt_R0; nra].
  unfold LN. rewrite N. unfold at_depth, v, kron. simpl. fold d. f_equal. ring.
Qed.

Lemma query_last w b : query (w ++ [b]) = At b (depth 0 (w ++ [b])).
Proof. unfold query. now rewrite rev_app_distr. Qed.

(** The first layer writes the state of the last token one-hot. *)
Lemma one_hot_bracket k D w b s b' d : run k D [] (w ++ [b]) = Some s -> (d <= D)%nat ->
  one_hot D (w ++ [b]) (At b' d) = if andb (same b' b) (d =? depth 0 (w ++ [b])) then 1 else 0.
Proof.
  intros H L. assert (St : stack_of k D []) by (split; [constructor|simpl; lia]).
  destruct (run_stack k D [] _ s St H) as [[_ Ls] Ds]. simpl in Ds.
  cbn [one_hot]. unfold token. rewrite rev_app_distr. cbn [rev app].
  rewrite (sine_depth k D _ s H). set (h := depth 0 (w ++ [b])) in *.
  assert (Up : (if d =? 0 then 1 else reaches d (at_depth h)) = if d <=? h then 1 else 0).
  { destruct (Nat.eqb_spec d 0) as [->|N]; [reflexivity|]. apply reaches_at. lia. }
  assert (Down : (if d <? D then reaches (S d) (at_depth h) else 0) = if S d <=? h then 1 else 0).
  { destruct (Nat.ltb_spec d D); [apply reaches_at; lia|]. destruct (Nat.leb_spec (S d) h); [lia|reflexivity]. }
  rewrite Up, Down. unfold relu.
  destruct (same b' b); destruct (Nat.leb_spec d h); destruct (Nat.leb_spec (S d) h); destruct (Nat.eqb_spec d h);
    try lia; cbn [andb]; unfold Rmax; destruct Rle_dec; lra.
Qed.

Lemma same_eq b b' : same b b' = true -> b = b'.
Proof. destruct b, b'; simpl; try discriminate; intro E; apply Nat.eqb_eq in E; now subst. Qed.

(** The values act on it as on the state itself. *)
Lemma valued_state k D V w s e : run k D [] w = Some s -> valued k D V (one_hot D w) e = V (query w) e.
Proof.
  intro H. assert (St : stack_of k D []) by (split; [constructor|simpl; lia]).
  destruct (run_stack k D [] _ s St H) as [[_ Ls] Ds]. simpl in Ds.
  unfold valued. destruct w as [|b0 w0].
  - cbn [one_hot query rev]. rewrite Sum_zero; [cbn; ring|]. intros i _. apply Sum_zero. intros d _.
    cbn [one_hot]. unfold token. cbn [rev]. rewrite (sine_depth k D [] [] eq_refl). unfold depth. cbn [fold_left].
    assert (Up : (if d =? 0 then 1 else reaches d (at_depth 0)) <= 1).
    { destruct (Nat.eqb_spec d 0); [lra|]. rewrite reaches_at by lia. destruct (d <=? 0); lra. }
    assert (Down : 0 <= (if d <? D then reaches (S d) (at_depth 0) else 0)).
    { destruct (d <? D); [|lra]. rewrite reaches_at by lia. destruct (S d <=? 0); lra. }
    unfold relu. rewrite Rmax_left by lra. ring.
  - destruct (@exists_last _ (b0 :: w0) ltac:(discriminate)) as [v [b E]]. rewrite E in *.
    assert (S0 : one_hot D (v ++ [b]) Start = 0) by (cbn [one_hot]; destruct v; reflexivity).
    rewrite S0, query_last. set (h := depth 0 (v ++ [b])) in *.
    destruct (run_split k D [] v [b] s H) as [t [_ R]]. cbn [run] in R.
    assert (Lb : (match b with Open i => i | Close i => i end < k)%nat).
    { destruct (run_split k D [] v [b] s H) as [t' [R1 R2]]. destruct (run_stack k D [] v t' St R1) as [[F _] _].
      cbn [run] in R2. destruct b as [i|i].
      - destruct (Nat.ltb_spec i k); [assumption|discriminate].
      - destruct t' as [|j t']; [discriminate|]. destruct (Nat.eqb_spec i j) as [<-|]; [|discriminate].
        now inversion F. }
    rewrite (one_term k (S D) _ (match b with Open i => i | Close i => i end) h); [|exact Lb|lia|].
    + rewrite !(one_hot_bracket k D v b s) by (assumption || lia). fold h. rewrite Nat.eqb_refl.
      destruct b as [i|i]; cbn [same andb]; rewrite Nat.eqb_refl; cbn [andb]; ring.
    + intros i' d Li' Ld N. rewrite !(one_hot_bracket k D v b s) by (assumption || lia). fold h.
      destruct b as [i|i]; cbn [same]; destruct (Nat.eqb_spec i' i); destruct (Nat.eqb_spec d h); cbn [andb];
        try ring; exfalso; destruct N; auto.
Qed.

(** The mean over all positions is what the second layer gathers from START and the brackets' states. *)
Lemma positions k D V w s e : run k D [] w = Some s ->
  Sum (S (length w)) (fun n => valued k D V (one_hot D (firstn n w)) e) = before_LN V (fun _ _ => 0) (query w) w e.
Proof.
  revert s. induction w as [|b w IH] using rev_ind; intros s H.
  - cbn [length Sum firstn]. rewrite (valued_state k D V [] [] e eq_refl). unfold before_LN, u. cbn. rewrite exp_0. ring.
  - destruct (run_split k D [] w [b] s H) as [t [R _]]. rewrite app_length. cbn [length].
    replace (S (length w + 1)) with (S (S (length w))) by lia. cbn [Sum].
    assert (Whole : firstn (S (length w)) (w ++ [b]) = w ++ [b])
      by (apply firstn_all2; rewrite app_length; simpl; lia).
    rewrite Whole, (valued_state k D V _ s e H), query_last.
    assert (Part : Sum (S (length w)) (fun n => valued k D V (one_hot D (firstn n (w ++ [b]))) e)
      = Sum (S (length w)) (fun n => valued k D V (one_hot D (firstn n w)) e)).
    { apply Sum_ext. intros n L. rewrite firstn_app. replace (n - length w)%nat with 0%nat by lia.
      cbn [firstn]. now rewrite app_nil_r. }
    pose proof (IH t R) as A. cbn [Sum] in Part, A. rewrite Part, A.
    unfold before_LN, u. rewrite gather_app, depth_app. cbn [gather]. rewrite exp_0.
    change (depth (depth 0 w) [b]) with (behind (depth 0 w) b). ring.
Qed.

(** @statement Bounded Dyck: Corollary 1
    @clause both layers together
    @kind clause
    @hypotheses any number k of types and D of levels, any probability p of an open bracket; START before each prefix;
      the mean over START and all brackets of the prefix as attention, in both layers
    @formula after every prefix of bounded Dyck, of any length, the output is the distribution of the next bracket (Definition 1)
    @note The first layer has the values (1, 0), (0, 1) and (0, -1) of START, open and closed brackets, its network two units a
      level and then one a state; the second acts on these units, with V_close = -V_open, and its network is that of
      balance_suffices. LN takes no mean off: that is linear and belongs to the values. A network reads its own bracket beside
      LN by the link of (6). *)
Theorem uniform_attention_is_enough :
  forall k D p w s o, run k D [] w = Some s -> uniform_transformer k D p w o = next k D p s o.
Proof.
  intros k D p w s o H. unfold uniform_transformer. set (V := values k D (fun _ _ => 0)).
  assert (B : under_11 k D (fun _ _ => 0) (fun _ _ => 0) (query w)) by (intros i l _ _; ring).
  rewrite <- (balance_suffices k D p (fun _ _ => 0) (fun _ _ => 0) (query w) 0 0 w s o B ltac:(intro; lra) H).
  fold V. f_equal. apply FunctionalExtensionality.functional_extensionality. intro e.
  set (v := before_LN V (fun _ _ => 0) (query w) w).
  assert (Pn : 0 < / INR (S (length w))) by (apply Rinv_0_lt_compat, lt_0_INR; lia).
  assert (E : second k D V w = fun e => / INR (S (length w)) * v e).
  { apply FunctionalExtensionality.functional_extensionality. intro e'. unfold second, v.
    rewrite (positions k D V w s e' H). unfold Rdiv. ring. }
  destruct (sums k D (fun _ _ => 0) (fun _ _ => 0) (query w) w s B H) as [_ A]. fold V v in A. rewrite exp_0 in A.
  rewrite E. apply LN_scaled; [exact Pn|]. apply sqrt_lt_R0. apply (Sum_pos _ _ (k * D)%nat); [intros; apply Rle_0_sqr|lia|].
  rewrite A. lra.
Qed.
